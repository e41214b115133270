"""`PolicySaver` writes policies as SavedModels that act with TensorFlow alone.

```python
saver = PolicySaver(agent.policy)
saver.save("policy")

loaded = tf.saved_model.load("policy")  # Needs neither tfrl nor TFP.
step = loaded.action(time_step, loaded.get_initial_state(batch_size))
```

`time_step` is any namedtuple called `TimeStep` with the fields `step_type`, `reward`,
`discount`, `observation`, in that order. `tfrl.policies.policy_loader.load` returns the
policy on NumPy arrays.
"""

from __future__ import annotations

import keyword
import os
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfrl.compilation import internals
from tfrl.policies import tf_policy
from tfrl.policies.acting import prediction, validation
from tfrl.policies.saving import distributions, saved_model
from tfrl.policies.saving.saved_model import (
    POLICY_SPECS_PBTXT,
    add_batch_dim,
    rename_spec_with_nest_paths,
    specs_from_collect_data_spec,
)
from tfrl.specs import tensor_spec
from tfrl.system import paths
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks, variables
from tfrl.utils.random_numbers import seeds

__all__ = [
    "POLICY_SPECS_PBTXT",
    "InputFnAndSpecType",
    "InputFnType",
    "PolicySaver",
    "add_batch_dim",
    "rename_spec_with_nest_paths",
    "specs_from_collect_data_spec",
]

# Turns the arguments of the saved `action` into the pair (time_step, policy_state).
InputFnType = Callable[[Any], tuple[Any, Any]]
InputFnAndSpecType = tuple[InputFnType, Any]

_SEED_SPEC = tf.TensorSpec([2], tf.int64, name="seed")


class PolicySaver:
    """Saves a policy as a SavedModel, and its variables as checkpoints.

    The SavedModel has

    - `action(time_step, policy_state=(), seed=None)`, or `action(example, seed=None)`
      with `input_fn_and_spec`. `seed` is an int64 tensor of shape `[2]`; without one,
      each loaded copy draws from fresh entropy;
    - `predict(observation)` at the start of episodes, and later `predict(observation,
      state, episode_start)`: both take raw observations `[B, ...]`, and return the
      actions and the next state. An episode begins where `episode_start`, bool `[B]`,
      is True. Integers may also be int8 or int64. A model with `input_fn_and_spec` has
      no `predict`;
    - `distribution`, with the arguments of `action` but the seed: a `PolicyStep` with a
      dictionary of tensors for each action, such as `{"logits": ...}`, or `{"loc":
      ...}` where the action is certain. `policy_loader.load(path).distribution` makes
      TFP's distributions of them. Where the policy has none, calling it raises an
      `InvalidArgumentError` that says why;
    - `get_initial_state(batch_size)`, `get_train_step()`, `get_metadata()`;
    - `model_variables`, `train_step`, `metadata`;
    - signatures `action`, `get_initial_state`, `get_train_step` and `get_metadata`,
      whose inputs and outputs are named by their path in the nest:
      `0/step_type`, `0/observation`, `1` (the state); `action`, `state`, `info`;
    - the signature `serving_default`, which takes only `observation`, or its parts by
      their paths (with an underscore after a keyword of Python, `global_`), and returns
      `action`, unless the policy has a state.
    """

    def __init__(
        self,
        policy: tf_policy.TFPolicy,
        batch_size: int | None = None,
        use_nest_path_signatures: bool = True,
        seed: int | None = None,
        train_step: tf.Variable | None = None,
        input_fn_and_spec: InputFnAndSpecType | None = None,
        metadata: dict[str, tf.Variable] | None = None,
    ) -> None:
        """Creates the saver.

        Args:
          policy: The policy to save. Each call of `save` writes the values that the
            policy's variables have at that time.
          batch_size: Number of batch entries; None leaves it open.
          use_nest_path_signatures: Whether signatures name tensors by their path in the
            nest. With False they use the names of the specs, which must be unique.
          seed: The seed of a random stream that is saved with the policy, so that all
            loaded copies return the same actions; for tests.
          train_step: The variable to save as the train step; None saves -1.
          input_fn_and_spec: `(input_fn, spec)`, where `input_fn` turns a nest of
            tensors that matches `spec` into `(time_step, policy_state)`.
          metadata: Variables by name to save with the policy.

        Raises:
          TypeError: `policy` is not a `TFPolicy`, or `metadata` not a dict of
            variables.
          ValueError: `batch_size` is neither None nor a positive integer, `train_step`
            is not a variable, or names are missing or collide.
        """
        _check_arguments(policy, batch_size, train_step, metadata)
        self._raw_policy = policy
        self._batch_size = batch_size
        self._metadata = metadata or {}
        if train_step is None:
            train_step = tf.Variable(-1, trainable=False, dtype=tf.int64)
        self._train_step = train_step
        self._input_fn_and_spec = input_fn_and_spec
        name_specs = (
            rename_spec_with_nest_paths
            if use_nest_path_signatures
            else saved_model.check_spec_names
        )
        inputs = name_specs((policy.time_step_spec, policy.policy_state_spec))
        self._policy_step_spec = name_specs(policy.policy_step_spec)
        self._policy_state_spec = name_specs(policy.policy_state_spec)
        if input_fn_and_spec is None:
            self._action_input_spec = inputs
        else:
            self._action_input_spec = (
                saved_model.name_unnamed_specs(input_fn_and_spec[1], "example"),
            )

        self._batched_input_spec = saved_model.add_outer_dims(
            self._action_input_spec, [batch_size]
        )
        self._policy = tf.Module(name="saved_policy")
        self._policy.train_step = train_step
        self._policy.metadata = self._metadata
        self._policy.model_variables = variables.as_tf_variables(policy.variables())
        self._generator = None
        if seed is not None:
            self._generator = seeds.make_generator(seed)
            self._policy.generator = self._generator
        self._traced: list[Any] = []
        self._descriptions: list[dict[str, Any]] = []
        self._policy.action = self._trace_action()
        self._policy.distribution = self._trace_distribution()
        if input_fn_and_spec is None:
            self._policy.predict = self._trace_predict()
        self._policy.get_initial_state = self._trace_get_initial_state()
        self._policy.get_train_step = self._trace(lambda: tf.identity(train_step))
        self._policy.get_metadata = self._trace(
            lambda: {k: tf.identity(v) for k, v in self._metadata.items()}
        )
        self._signatures = self._make_signatures()
        self._track_captures()

    @property
    def policy(self) -> tf.Module:
        """The module that is saved."""
        return self._policy

    @property
    def action_input_spec(self) -> types.NestedTensorSpec:
        """Specs of the inputs of `action`, named as in the signature."""
        return self._action_input_spec

    @property
    def policy_step_spec(self) -> policy_step.PolicyStep:
        """Specs of the output of `action`, named as in the signature."""
        return self._policy_step_spec

    @property
    def policy_state_spec(self) -> types.NestedTensorSpec:
        """Specs of the policy state, named as in the signature."""
        return self._policy_state_spec

    @property
    def signatures(self) -> dict[str, Any]:
        """The signatures of the SavedModel: functions on flat dicts, by name."""
        return self._signatures

    def get_train_step(self) -> Any:
        """Returns the train step: an integer, or a tensor inside a `tf.function`."""
        if tf.executing_eagerly():
            return int(self._train_step)
        return tf.identity(self._train_step)

    def get_metadata(self) -> dict[str, Any]:
        """Returns the metadata: arrays, or variables inside a `tf.function`."""
        if tf.executing_eagerly():
            return {name: value.numpy() for name, value in self._metadata.items()}
        return self._metadata

    def register_function(
        self,
        name: str,
        fn: Callable[[types.NestedTensor], types.NestedTensor],
        input_spec: types.NestedTensorSpec,
        outer_dims: Sequence[int | None] = (None,),
    ) -> None:
        """Adds a function of one argument to the SavedModel.

        Args:
          name: The attribute of the loaded model that holds the function.
          fn: A function of a nest of tensors.
          input_spec: The nest of specs of its argument, without outer dimensions.
          outer_dims: Sizes of the outer dimensions; by default one batch dimension.

        Raises:
          ValueError: The name is taken.
        """
        batched = saved_model.add_outer_dims(input_spec, outer_dims)
        function = tf.function(fn)
        traced = function.get_concrete_function(batched)
        self._register(name, function, [traced])

    def register_concrete_function(
        self, name: str, fn: Any, assets: Any | None = None
    ) -> None:
        """Adds a concrete function, or a `tf.function` with its existing traces.

        Args:
          name: The attribute of the loaded model that holds the function.
          fn: The function to add, together with the variables that it uses.
          assets: Further resources of `fn` to save.

        Raises:
          ValueError: The name is taken.
        """
        is_concrete = hasattr(fn, "variables")
        traced = [fn] if is_concrete else internals.concrete_functions(fn)
        self._register(name, fn, traced)
        if assets is not None:
            setattr(self._policy, f"{name}_assets", assets)

    def save(
        self, export_dir: str, options: tf.saved_model.SaveOptions | None = None
    ) -> None:
        """Writes the SavedModel to `export_dir`, and at last the file with the specs.

        Raises:
          ValueError: TensorFlow would interpret `export_dir` as a pattern.
        """
        paths.refuse_patterns("export_dir", export_dir)
        export_dir = os.fspath(export_dir)
        with saved_model.no_harmless_warnings():
            tf.saved_model.save(
                self._policy, export_dir, signatures=self._signatures, options=options
            )
        distributions.write(export_dir, self._descriptions)
        specs = {
            "collect_data_spec": self._raw_policy.collect_data_spec,
            "policy_state_spec": self._raw_policy.policy_state_spec,
        }
        path = os.path.join(export_dir, POLICY_SPECS_PBTXT)
        # Renamed when complete, since other processes may wait for the file.
        tensor_spec.to_pbtxt_file(f"{path}_temp", specs)
        tf.io.gfile.rename(f"{path}_temp", path, overwrite=True)

    def save_checkpoint(
        self, export_dir: str, options: tf.train.CheckpointOptions | None = None
    ) -> None:
        """Writes only the variables, to `export_dir/variables/variables*`.

        `policy_loader` loads them into a model that `save` wrote, and
        `SavedModelPyTFEagerPolicy.update_from_checkpoint` into a loaded policy.

        Raises:
          ValueError: TensorFlow would interpret `export_dir` as a pattern.
        """
        paths.refuse_patterns("export_dir", export_dir)
        prefix = os.path.join(
            os.fspath(export_dir),
            tf.saved_model.VARIABLES_DIRECTORY,
            tf.saved_model.VARIABLES_FILENAME,
        )
        # The children are named as in the SavedModel, so that the checkpoint can stand
        # in for its variables; `policy` is there for `Checkpoint(policy=loaded)`.
        children = tf.train.TrackableView.children(self._policy)
        checkpoint = tf.train.Checkpoint(policy=self._policy, **children)
        checkpoint.write(prefix, options=options)

    def _trace_action(self) -> Any:
        """Returns `action`, traced for the inputs that the SavedModel accepts."""
        if self._input_fn_and_spec is not None:
            action = tf.function(self._act_on_example)
        else:
            # Without AutoGraph, as in drivers: it would convert every function that the
            # policy calls, which takes several times as long as tracing.
            @tf.function(autograph=False)
            def action(
                time_step: ts.TimeStep, policy_state: Any = (), seed: Any = None
            ) -> policy_step.PolicyStep:
                return self._act(time_step, policy_state, seed)

        specs = self._batched_input_spec
        self._traced.append(action.get_concrete_function(*specs))
        self._traced.append(action.get_concrete_function(*specs, seed=_SEED_SPEC))
        return action

    def _trace_distribution(self) -> Any:
        """Returns `distribution`, traced for the inputs of `action` but its seed."""
        if self._input_fn_and_spec is not None:
            distribution = tf.function(lambda example: self._distribute(example))
        else:

            @tf.function(autograph=False)
            def distribution(time_step: ts.TimeStep, policy_state: Any = ()) -> Any:
                return self._distribute(time_step, policy_state)

        self._traced.append(
            distribution.get_concrete_function(*self._batched_input_spec)
        )
        return distribution

    def _trace_predict(self) -> Any:
        """Returns `predict`, traced for the arguments that the SavedModel accepts."""
        policy = self._raw_policy
        time_step_spec, state_spec = self._batched_input_spec
        starts = tf.TensorSpec([self._batch_size], tf.bool, name="episode_start")

        @tf.function(autograph=False)
        def predict(
            observation: Any, state: Any = None, episode_start: Any = None
        ) -> tuple[Any, Any]:
            observation = tf.nest.map_structure(
                lambda x, leaf: tf.cast(x, leaf.dtype),
                observation,
                policy.time_step_spec.observation,
            )
            if episode_start is None:
                batch_size = tf.shape(tf.nest.flatten(observation)[0])[0]
                episode_start = tf.fill([batch_size], True)
                state = policy.get_initial_state(batch_size)
            # `predict` calls the trace of `action`.
            return prediction.predict_tensors(
                self._policy, policy.time_step_spec, observation, state, episode_start
            )

        observation = time_step_spec.observation
        # A SavedModel casts no arrays, and NumPy's integers are int64, Gymnasium's of
        # MultiBinary int8.
        others = [_with_integers(observation, dtype) for dtype in (tf.int8, tf.int64)]
        for each in [observation, *(x for x in others if x != observation)]:
            for rest in ((), (state_spec, starts)):
                self._traced.append(predict.get_concrete_function(each, *rest))
        return predict

    def _act_on_example(self, example: Any, seed: Any = None) -> policy_step.PolicyStep:
        return self._act(*self._inputs_of(example), seed)

    def _inputs_of(self, example: Any) -> tuple[ts.TimeStep, Any]:
        """Returns the time step and the policy state of an example, checked."""
        assert self._input_fn_and_spec is not None
        time_step, policy_state = self._input_fn_and_spec[0](example)
        for values, spec, name in zip(
            (time_step, policy_state),
            (self._raw_policy.time_step_spec, self._raw_policy.policy_state_spec),
            ("time_step", "policy_state"),
            strict=True,
        ):
            validation.conform(values, spec, f"input_fn's {name}")
        return time_step, policy_state

    def _distribute(self, *inputs: Any) -> Any:
        """Returns a step of the tensors of distributions; keeps their descriptions."""
        policy = self._raw_policy
        if not policy._needs_seed:
            # `distribution` calls the trace of `action`, and needs no TFP.
            step = self._policy.action(*inputs)
            self._descriptions = [distributions.CERTAIN] * len(
                tf.nest.flatten(policy.action_spec)
            )
            action = tf.nest.map_structure(lambda loc: {"loc": loc}, step.action)
            return step._replace(action=action)
        if self._input_fn_and_spec is not None:
            inputs = self._inputs_of(*inputs)
        try:
            step = policy.distribution(*inputs)
            tensors, self._descriptions = distributions.take_apart(step.action)
        except (NotImplementedError, TypeError, ValueError) as error:
            # Such a policy can act, and be saved, all the same.
            tf.debugging.Assert(False, [f"distribution: {error}"])
            return ()
        return step._replace(action=tensors)

    def _act(
        self, time_step: ts.TimeStep, policy_state: Any, seed: tf.Tensor | None
    ) -> policy_step.PolicyStep:
        if seed is None and self._raw_policy._needs_seed:
            if self._generator is None:
                seed = saved_model.fresh_seed()
            else:
                seed = seeds.next_seed(self._generator)
        # The policy's own generator is never used, because a SavedModel would freeze
        # its state.
        return self._raw_policy.action(time_step, policy_state, seed)

    def _trace_get_initial_state(self) -> Any:
        fixed = self._batch_size

        @tf.function(autograph=False)
        def get_initial_state(batch_size: Any = fixed) -> Any:
            return self._raw_policy.get_initial_state(batch_size)

        spec = [] if fixed else [tf.TensorSpec([], tf.int32, name="batch_size")]
        self._traced.append(get_initial_state.get_concrete_function(*spec))
        return get_initial_state

    def _trace(self, fn: Callable[[], Any]) -> Any:
        function = tf.function(fn, autograph=False)
        self._traced.append(function.get_concrete_function())
        return function

    def _make_signatures(self) -> dict[str, Any]:
        batched_inputs = self._batched_input_spec
        batch_size_spec = tf.TensorSpec([], tf.int32, name="batch_size")
        signature = saved_model.function_with_flat_signature
        serving = {}
        has_state = bool(tf.nest.flatten(self._policy_state_spec))
        if self._input_fn_and_spec is None and not has_state:
            serving["serving_default"] = signature(
                lambda observation: self._policy.predict(observation)[0],
                (_named_for_serving(batched_inputs[0].observation),),
                saved_model.names_of(self._policy_step_spec.action),
            )
        return {
            **serving,
            "action": signature(
                self._policy.action,
                batched_inputs,
                saved_model.names_of(self._policy_step_spec),
            ),
            "get_initial_state": signature(
                self._policy.get_initial_state,
                () if self._batch_size else (batch_size_spec,),
                saved_model.names_of(self._policy_state_spec),
            ),
            "get_train_step": signature(
                self._policy.get_train_step, (), [self._train_step.dtype.name]
            ),
            "get_metadata": signature(
                self._policy.get_metadata, (), sorted(self._metadata)
            ),
        }

    def _register(self, name: str, fn: Any, traced: list[Any]) -> None:
        if hasattr(self._policy, name):
            raise ValueError(
                f"name: got {name!r}, expected one that the saved policy does not have "
                "yet; choose another."
            )
        setattr(self._policy, name, fn)
        self._traced.extend(traced)
        self._track_captures()

    def _track_captures(self) -> None:
        """Tracks the variables that the functions capture, so that they are saved."""
        self._policy.captured_variables = variables.as_tf_variables(
            variable for function in self._traced for variable in function.variables
        )
        if any(map(saved_model.captures_other_resources, self._traced)):
            # Only the policy itself tracks other resources, such as lookup tables.
            self._policy.wrapped_policy = self._raw_policy


def _with_integers(spec: Any, dtype: tf.DType) -> Any:
    """Returns specs whose int32 leaves have another dtype."""
    return tf.nest.map_structure(
        lambda leaf: tf.TensorSpec(
            leaf.shape, dtype if leaf.dtype == tf.int32 else leaf.dtype, leaf.name
        ),
        spec,
    )


def _named_for_serving(spec: Any) -> Any:
    """Returns an observation's specs by the names that clients write."""

    def named(leaf: tf.TensorSpec) -> tf.TensorSpec:
        name = leaf.name.removeprefix("0/").removeprefix("observation/")
        # TensorFlow takes no keyword of Python, such as "global".
        name = f"{name}_" if keyword.iskeyword(name) else name
        return tf.TensorSpec(leaf.shape, leaf.dtype, name)

    return tf.nest.map_structure(named, spec)


def _check_arguments(
    policy: Any, batch_size: Any, train_step: Any, metadata: Any
) -> None:
    if not isinstance(policy, tf_policy.TFPolicy):
        raise TypeError(
            f"policy is not a TFPolicy: got {type(policy).__name__}, expected the "
            "policy on tensors; pass agent.policy or agent.collect_policy."
        )
    number_checks.check_integer(
        "batch_size", batch_size, 1, optional=True, remedy="None leaves it open"
    )
    if train_step is not None and not isinstance(train_step, tf.Variable):
        raise ValueError(
            f"train_step: got {train_step!r}, expected a tf.Variable; pass "
            "agent.train_step_counter."
        )
    for name, value in (metadata or {}).items():
        if not isinstance(name, str) or not isinstance(value, tf.Variable):
            raise TypeError(
                f"metadata: got {name!r}: {value!r}, expected tf.Variables by name; "
                "write {'name': tf.Variable(value)}."
            )
