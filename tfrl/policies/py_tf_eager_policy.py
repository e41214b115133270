"""Policies on NumPy arrays that run a policy on tensors, live or saved."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.policies import py_policy, tf_policy
from tfrl.policies.acting import prediction
from tfrl.policies.saving import distributions, saved_model
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import common, mixins, nest_utils
from tfrl.utils.random_numbers import seeds


class PyTFEagerPolicyBase(py_policy.PyPolicy):
    """Runs a policy on tensors with arrays; adds and removes the batch dimension.

    The policy state stays a nest of batched tensors, since the caller only passes it
    back to `action`. Batched tensors, as a driver of tensors gives them, are passed to
    the policy as they are.
    """

    # Whether the policy's methods are graphs, so that a trace changes nothing.
    _is_graph = False
    _takes_tensors = True

    def __init__(
        self,
        policy: Any,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedArraySpec,
        policy_state_spec: types.NestedArraySpec = (),
        info_spec: types.NestedArraySpec = (),
        use_tf_function: bool = False,
        batch_time_steps: bool = True,
    ) -> None:
        """Creates the policy.

        Args:
          policy: An object with `action`, `get_initial_state` and `variables`.
          time_step_spec: See `PyPolicy`.
          action_spec: See `PyPolicy`.
          policy_state_spec: See `PyPolicy`.
          info_spec: See `PyPolicy`.
          use_tf_function: Whether `policy.action` runs as a `tf.function`, which is
            much faster from the second call on.
          batch_time_steps: Whether arrays have no batch dimension. With False they
            must be batched, and `action` returns tensors.
        """
        super().__init__(time_step_spec, action_spec, policy_state_spec, info_spec)
        self._policy = policy
        self._use_tf_function = use_tf_function
        self._batch_time_steps = batch_time_steps
        self._policy_action_fn = (
            _traced_action(policy) if use_tf_function else policy.action
        )

    def variables(self) -> list[np.ndarray]:
        """Returns the values of the policy's variables."""
        return [np.asarray(v) for v in self._policy.variables()]

    @functools.cached_property
    def _predictor(self) -> prediction.Predictor:
        return prediction.of_tensors(
            self._time_step_spec,
            at_once=self._use_tf_function or self._is_graph,
        )

    def _acting(self) -> prediction.Acting:
        return self._policy

    def _get_initial_state(self, batch_size: int | None) -> types.NestedTensor:
        if batch_size is None and self._batch_time_steps:
            batch_size = 1
        return self._policy.get_initial_state(batch_size)

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedArray,
        seed: int | None = None,
    ) -> policy_step.PolicyStep:
        # They are converted to tensors, because each new array would cause a new trace.
        step_type = time_step.step_type
        is_batched = not self._batch_time_steps or (
            tf.is_tensor(step_type) and step_type.shape.rank == 1
        )
        as_tensor = tf.convert_to_tensor if is_batched else _batched_tensor
        time_step = tf.nest.map_structure(as_tensor, time_step)
        if tf.nest.flatten(policy_state):
            policy_state = tf.nest.map_structure(tf.convert_to_tensor, policy_state)
        seed_tensor = None
        if seed is not None:
            seed_tensor = tf.cast(seeds.as_seed(seed), tf.int64)
        step = self._policy_action_fn(time_step, policy_state, seed_tensor)
        if is_batched:
            return step
        return step._replace(
            action=nest_utils.unbatch_nested_tensors_to_arrays(step.action),
            info=nest_utils.unbatch_nested_tensors_to_arrays(step.info),
        )


def _batched_tensor(array: Any) -> tf.Tensor:
    return tf.constant(np.asarray(array)[np.newaxis])


def _traced_action(policy: Any) -> Any:
    """Returns `policy.action` as a `tf.function`, the policy's own if possible."""
    if isinstance(policy, tf_policy.TFPolicy) and policy._is_pure_tensorflow():
        # Some programs wrap the same policy every few episodes; its trace is reused.
        return policy._traced_action.function(policy)
    return common.function(
        lambda time_step, policy_state, seed: policy.action(
            time_step, policy_state, seed
        )
    )


class PyTFEagerPolicy(PyTFEagerPolicyBase):
    """Runs a `TFPolicy` on NumPy arrays."""

    def __init__(
        self,
        policy: tf_policy.TFPolicy,
        use_tf_function: bool = False,
        batch_time_steps: bool = True,
    ) -> None:
        """Creates the policy.

        Args:
          policy: The `TFPolicy`.
          use_tf_function: See `PyTFEagerPolicyBase`.
          batch_time_steps: See `PyTFEagerPolicyBase`.
        """
        super().__init__(
            policy,
            policy.time_step_spec,
            policy.action_spec,
            policy.policy_state_spec,
            policy.info_spec,
            use_tf_function=use_tf_function,
            batch_time_steps=batch_time_steps,
        )


class SavedModelPyTFEagerPolicy(mixins.Forwards, PyTFEagerPolicyBase):
    """Runs a policy that `PolicySaver` saved on NumPy arrays."""

    _forwards_to = "_policy"
    _is_graph = True

    def __init__(
        self,
        model_path: str,
        time_step_spec: ts.TimeStep | None = None,
        action_spec: types.NestedArraySpec = (),
        policy_state_spec: types.NestedArraySpec = (),
        info_spec: types.NestedArraySpec = (),
        load_specs_from_pbtxt: bool = False,
        use_tf_function: bool = False,
        batch_time_steps: bool = True,
    ) -> None:
        """Creates the policy.

        Args:
          model_path: The directory that `PolicySaver.save` wrote.
          time_step_spec: See `PyPolicy`; None if the specs are loaded.
          action_spec: See `PyPolicy`.
          policy_state_spec: See `PyPolicy`.
          info_spec: See `PyPolicy`.
          load_specs_from_pbtxt: Whether the specs come from the file that `PolicySaver`
            writes next to the model.
          use_tf_function: See `PyTFEagerPolicyBase`.
          batch_time_steps: See `PyTFEagerPolicyBase`.

        Raises:
          ValueError: There is no `time_step_spec`, and `load_specs_from_pbtxt` is
            False; or a file of the policy is damaged.
          FileNotFoundError: `model_path` holds no saved policy.
        """
        model_path = os.fspath(model_path)
        if time_step_spec is None and not load_specs_from_pbtxt:
            raise ValueError(
                "time_step_spec: got None and load_specs_from_pbtxt=False, expected "
                "the policy's specs from one of them; pass load_specs_from_pbtxt=True "
                "to read the file saved with the policy."
            )
        policy = saved_model.load_saved_model(model_path)
        if time_step_spec is None:
            specs = saved_model.load_specs(model_path)
            time_step_spec = specs["time_step_spec"]
            action_spec = specs["action_spec"]
            policy_state_spec = specs["policy_state_spec"]
            info_spec = specs["info_spec"]
        super().__init__(
            policy,
            time_step_spec,
            action_spec,
            policy_state_spec,
            info_spec,
            use_tf_function=use_tf_function,
            batch_time_steps=batch_time_steps,
        )
        self._model_path = model_path
        metadata = getattr(policy, "metadata", None)
        self._checkpoint = tf.train.Checkpoint(
            model_variables=policy.model_variables,
            train_step=policy.train_step,
            **({"metadata": metadata} if metadata else {}),
        )
        self._train_step_from_last_restored_checkpoint_path: int | None = None

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedArray,
        seed: int | None = None,
    ) -> policy_step.PolicyStep:
        try:
            return super()._action(time_step, policy_state, seed)
        except ValueError as error:
            try:
                saved_model.check_observation(
                    self._policy,
                    time_step.observation,
                    batched=not self._batch_time_steps,
                )
            except ValueError as reason:
                raise reason from error
            raise

    def distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor = ()
    ) -> policy_step.PolicyStep:
        """Returns the distribution over actions for each entry of a batch.

        Args:
          time_step: Arrays or tensors `[B, ...]`, always with a batch dimension.
          policy_state: The policy state, `[B, ...]`.

        Returns:
          `PolicyStep` whose `action` is a nest of TFP distributions with batch shape
          `[B]`.

        Raises:
          tf.errors.InvalidArgumentError: The policy has no distribution; it says why.
          FileNotFoundError: The file that describes it is missing.
        """
        descriptions = distributions.read(self._model_path)
        step = self._policy.distribution(
            *tf.nest.map_structure(tf.convert_to_tensor, (time_step, policy_state))
        )
        action = distributions.put_together(
            self._action_spec, step.action, descriptions
        )
        return step._replace(action=action)

    def get_train_step(self) -> int:
        """Returns the train step at which the policy was saved, or -1 if unknown."""
        return int(self._policy.get_train_step())

    def get_train_step_from_last_restored_checkpoint_path(self) -> int | None:
        """Returns the number that ends the last restored checkpoint's path, or None."""
        return self._train_step_from_last_restored_checkpoint_path

    def get_metadata(self) -> dict[str, tf.Tensor]:
        """Returns the metadata that was saved with the policy."""
        return self._policy.get_metadata()

    def variables(self) -> Sequence[Any]:  # type: ignore[override]
        """Returns the variables of the loaded model."""
        return self._policy.model_variables

    def update_from_checkpoint(self, checkpoint_path: str) -> None:
        """Sets the policy's `variables()`, and the metadata, from a checkpoint.

        What the policy reads else, such as a variable that holds an epsilon, keeps the
        value of the saved model; `policy_loader.materialize_saved_model` takes all of
        the checkpoint.

        Args:
          checkpoint_path: The path given to `PolicySaver.save_checkpoint` or to
            `PolicySaver.save`.

        Raises:
          AssertionError: The checkpoint does not hold all the variables.
        """
        checkpoint_path = os.fspath(checkpoint_path)
        prefix = os.path.join(
            checkpoint_path,
            tf.saved_model.VARIABLES_DIRECTORY,
            tf.saved_model.VARIABLES_FILENAME,
        )
        status = self._checkpoint.read(prefix)
        # A checkpoint may hold other variables too, so that policies can share it.
        status.assert_existing_objects_matched().expect_partial()
        number = re.search(r"(\d+)$", checkpoint_path)
        self._train_step_from_last_restored_checkpoint_path = (
            int(number.group(1)) if number else None
        )
