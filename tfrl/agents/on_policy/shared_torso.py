"""SharedTorso: the layers that an actor and a critic share, computed once an update."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tfrl.agents import normalization
from tfrl.agents.on_policy import ppo_policy
from tfrl.networks import sequential
from tfrl.policies import utils as policy_utils

if TYPE_CHECKING:
    from tfrl.trajectories import time_step as ts
    from tfrl.typing import types
    from tfrl.utils.tensor_normalizer import TensorNormalizer


class SharedTorso:
    """The layers with which an actor and a critic begin, and a policy for the rest.

    The other layers, the heads, take the output of the shared layers, the features, as
    the observation.

    Attributes:
      policy: Applies the heads to time steps that `with_features` returns, in training
        mode.
    """

    def __init__(
        self,
        layers: Sequence[types.Layer],
        networks: Sequence[sequential.Sequential],
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        normalizer: TensorNormalizer | None,
        splitter: types.Splitter | None,
    ) -> None:
        """Divides the networks.

        Args:
          layers: The layers with which both networks begin, which have no state.
          networks: The actor and the critic, whose layers have been built.
          time_step_spec: A `TimeStep` of tensor specs.
          action_spec: A nest of bounded tensor specs.
          normalizer: Normalizes the observations; None does not normalize.
          splitter: See `OnPolicyOptions.observation_and_action_constraint_splitter`.
        """
        spec = policy_utils.network_observation_spec(
            time_step_spec.observation, splitter
        )
        (self._network,) = normalization.normalized_networks(
            normalizer, spec, sequential.Sequential(layers, input_spec=spec)
        )
        self._splitter = splitter
        features = self._network.create_variables(spec)
        actor, critic = (
            sequential.Sequential(network.layers[len(layers) :]) for network in networks
        )
        self.policy = ppo_policy.PPOPolicy(
            self._with_features(time_step_spec, features),
            action_spec,
            actor,
            critic,
            collect=False,
            training=True,
            observation_and_action_constraint_splitter=splitter and _split,
        )

    def with_features(self, time_steps: ts.TimeStep) -> ts.TimeStep:
        """Returns time steps `[B, T]` with features instead of observations."""
        observation = time_steps.observation
        if self._splitter is not None:
            observation, _ = self._splitter(observation)
        features, _ = self._network(
            observation, step_type=time_steps.step_type, training=True
        )
        return self._with_features(time_steps, features)

    def _with_features(self, time_step: ts.TimeStep, features: Any) -> ts.TimeStep:
        """Puts features in, or their specs, beside the mask of actions if any."""
        if self._splitter is not None:
            features = features, self._splitter(time_step.observation)[1]
        return time_step._replace(observation=features)


def _split(observation: Any) -> Any:
    """Splits features and a mask, which are a pair."""
    return observation
