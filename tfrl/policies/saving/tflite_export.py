"""Saved policies as TensorFlow Lite models, for phones and microcontrollers.

```python
PolicySaver(agent.policy, batch_size=1).save("policy")
model = tflite_export.convert("policy")

runner = tf.lite.Interpreter(model_content=model).get_signature_runner()
outputs = runner(**{
    "0/step_type": np.array([1], np.int32),
    "0/reward": np.array([0], np.float32),
    "0/discount": np.array([1], np.float32),
    "0/observation": observation[np.newaxis],
})
action = outputs["action"]
```

The model has the inputs and outputs of the signature `action` of `PolicySaver`: a
policy with a state takes it as `1` (`1/0`, ... for a nest), which is zeros at first,
and returns it as `state`.
"""

from __future__ import annotations

import os

import tensorflow as tf

from tfrl.policies.saving import saved_model


def convert(saved_model_path: str, select_tf_ops: bool = False) -> bytes:
    """Returns a saved policy's signature `action` as a TensorFlow Lite model.

    Args:
      saved_model_path: The directory that `PolicySaver.save` wrote.
      select_tf_ops: Whether the model may use TensorFlow's own operations where
        TensorFlow Lite has none. The model then needs the Flex delegate, which the
        Python packages of TensorFlow 2.20 and 2.21 leave out. Policies that draw random
        numbers need such operations; a `GreedyPolicy` of the usual networks does not.

    Raises:
      FileNotFoundError: `saved_model_path` holds no saved policy.
      ValueError: The policy uses operations that TensorFlow Lite does not have.
    """
    saved_model_path = os.fspath(saved_model_path)
    loaded = saved_model.load_saved_model(saved_model_path)
    # It leaves no variables in the model, as the converter of SavedModels may.
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [loaded.signatures["action"]], loaded
    )
    ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    if select_tf_ops:
        ops.append(tf.lite.OpsSet.SELECT_TF_OPS)
    converter.target_spec.supported_ops = ops
    try:
        return converter.convert()
    except Exception as error:
        # The converter's own class of errors has no public name.
        if type(error).__name__ != "ConverterError":
            raise
        raise ValueError(
            f"saved_model_path: the policy in {saved_model_path} uses operations that "
            "TensorFlow Lite lacks, expected its built-in ones only"
            f"{' and TensorFlow operations' if select_tf_ops else ''}; save a "
            "GreedyPolicy of it, or pass select_tf_ops=True for an interpreter with "
            "the Flex delegate."
        ) from error
