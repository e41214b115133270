"""The policy of DreamerV3, which keeps the state of its world model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.agents.dreamer import choices, dreamer_networks, rssm
from tfrl.policies import tf_policy
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils.random_numbers import seeds


class DreamerPolicy(tf_policy.TFPolicy):
    """Acts on the state that follows from all observations of an episode so far.

    Its state is a dictionary: `deter` and `stoch`, see `rssm.State`, of the step
    before, and the `action` taken there, as a vector.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        actor: choices.Actor,
        model: dreamer_networks.WorldModel,
        head: dreamer_networks.Head,
        *,
        greedy: bool = False,
        seed: int | None = None,
        name: str | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          time_step_spec: A `TimeStep` of specs.
          actor: The reading of the head's outputs.
          model: The world model.
          head: The actor's network.
          greedy: Whether the most probable states and actions are taken.
          seed: See `TFPolicy`.
          name: The module's name.
        """
        sizes = model.sizes
        spec = {
            "deter": tf.TensorSpec([sizes.deter], tf.float32),
            "stoch": tf.TensorSpec([sizes.stoch, sizes.classes], tf.float32),
            "action": tf.TensorSpec([actor.actions.size], tf.float32),
        }
        super().__init__(
            time_step_spec,
            actor.actions.spec,
            policy_state_spec=spec,
            name=name,
            seed=seed,
        )
        self._set_untracked("_actor", actor)
        self._model, self._head = model, head
        self._greedy = greedy

    def _variables(self) -> Sequence[Any]:
        return [*self._model.variables, *self._head.variables]

    def _is_pure_tensorflow(self) -> bool:
        return type(self) is DreamerPolicy

    def _action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor, seed: tf.Tensor
    ) -> policy_step.PolicyStep:
        return self._step(time_step, policy_state, None if self._greedy else seed)

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        return self._step(time_step, policy_state, None)

    def _step(
        self, time_step: ts.TimeStep, policy_state: Any, seed: tf.Tensor | None
    ) -> policy_step.PolicyStep:
        """Acts by draws, or greedily without a seed."""
        model = self._model.rssm
        before = rssm.State(policy_state["deter"], policy_state["stoch"])
        deter = model.advance(before, policy_state["action"])
        # `TFPolicy` resets the state at the first step of an episode to zeros.
        logits = model.posterior(deter, self._model.embed(time_step.observation))
        if seed is None:
            state = rssm.State(deter, rssm.mode(logits))
            vectors = self._actor.mode(self._head(state.features()))
        else:
            own, action_seed = seeds.split_seed(seed, 2)
            noise = rssm.gumbel(own, tf.shape(logits))
            state = rssm.State(deter, rssm.sample(logits, noise))
            outputs = self._head(state.features())
            vectors = self._actor.sample(outputs, action_seed)
        following = {"deter": deter, "stoch": state.stoch, "action": vectors}
        action = self._actor.actions.actions(vectors)
        return policy_step.PolicyStep(action, following)
