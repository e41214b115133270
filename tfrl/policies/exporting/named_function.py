"""A policy as a function from named tensors to named tensors, for other formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrl.policies import greedy_policy, tf_policy
from tfrl.policies.saving import distributions
from tfrl.trajectories import time_step as ts
from tfrl.utils import nest_utils

# The names of outputs, by the names of the tensors of distributions.
_NUMBERS = {"logits": "logits", "probs": "probabilities", "loc": "mean"}


class NamedFunction(tf.Module):
    """The greedy actions of a policy, and its next state.

    The inputs are `observation` and `state`, or their parts by their paths, such as
    `observation/camera` and `state/0`. At the beginning of an episode the state is
    zeros. The outputs are `action`, `next_state` and, if the policy has distributions,
    their `logits`, `probabilities` or `mean`, or the parts of these by their paths.

    Attributes:
      policy: The greedy policy.
      inputs: The spec of each input by its name, without the dimension of the batch.
    """

    def __init__(
        self,
        policy: tf_policy.TFPolicy,
        original_action: Callable[[Any], Any] | None = None,
    ) -> None:
        """Stores the policy.

        Args:
          policy: The policy; it need not be greedy.
          original_action: Changes the nest of actions, in TensorFlow; None leaves it.
        """
        super().__init__()
        if not isinstance(policy, greedy_policy.GreedyPolicy):
            policy = greedy_policy.GreedyPolicy(policy)
        self.policy = policy
        self.inputs = {
            **_named("observation", policy.time_step_spec.observation),
            **_named("state", policy.policy_state_spec),
        }
        self._original = original_action or (lambda action: action)

    def __call__(self, *inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the outputs `[B, ...]` for the inputs `[B, ...]`, in their order."""
        specs = self.policy.time_step_spec.observation, self.policy.policy_state_spec
        observation, state = tf.nest.pack_sequence_as(specs, inputs)
        size = tf.shape(inputs[0])[0]
        time_step = ts.TimeStep(
            tf.fill([size], ts.StepType.MID),
            tf.nest.map_structure(
                lambda spec: tf.zeros([size, *spec.shape], spec.dtype),
                self.policy.time_step_spec.reward,
            ),
            tf.ones([size]),
            observation,
        )
        step = self.policy.action(time_step, state)
        return {
            **_named("action", self._original(step.action)),
            **_named("next_state", step.state),
            **self._numbers(time_step, state),
        }

    def trace(self, batch_size: int | None = None) -> Any:
        """Returns the concrete function for a size of the batch; None for any size."""
        specs = [
            tf.TensorSpec([batch_size, *spec.shape], spec.dtype, name)
            for name, spec in self.inputs.items()
        ]
        function = tf.function(self, input_signature=specs, autograph=False)
        return function.get_concrete_function()

    def _numbers(self, time_step: ts.TimeStep, state: Any) -> dict[str, tf.Tensor]:
        """Returns the logits and means, by name; none without distributions."""
        try:
            step = self.policy.wrapped_policy.distribution(time_step, state)
            tensors, _ = distributions.take_apart(step.action)
        except (NotImplementedError, TypeError, ValueError):
            return {}  # Such a policy can act all the same.
        found = {}
        for path, tensor in nest_utils.flatten_with_joined_paths(tensors):
            *parts, last = path.split("/")
            if last in _NUMBERS:
                parts = [part for part in parts if part != "distribution"]
                found["/".join([_NUMBERS[last], *parts])] = tensor
        return found


def _named(name: str, nest: Any) -> dict[str, Any]:
    """Returns the leaves of a nest by their paths, which begin with a name."""
    return {
        f"{name}/{path}".removesuffix("/"): leaf
        for path, leaf in nest_utils.flatten_with_joined_paths(nest)
    }
