"""Objects of Keras 2, which cannot be parts of Keras 3's.

`tf.keras` is Keras 2 if the environment variable `TF_USE_LEGACY_KERAS` is set, as
TF-Agents needs it. Keras 3 calls a layer of Keras 2 like any function, and does not see
its weights: they would be neither trained nor saved.
"""

from __future__ import annotations

from typing import Any


def check(value: Any, where: str) -> None:
    """Raises a TypeError if a value is an object of Keras 2.

    Args:
      value: The value.
      where: The name of its place, for the error.
    """
    kind = type(value)
    if any(base.__module__.startswith("tf_keras.") for base in kind.__mro__):
        raise TypeError(
            f"{where}: got the {kind.__name__} of Keras 2, expected that of Keras 3, "
            "which does not see the weights of layers of Keras 2; delete the line "
            'os.environ["TF_USE_LEGACY_KERAS"] = "1", without which tf.keras is Keras '
            "3, or write keras in place of tf_keras."
        )
