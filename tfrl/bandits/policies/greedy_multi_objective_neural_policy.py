"""Chooses the largest scalarized reward of several predicted objectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.bandits.multi_objective import multi_objective_scalarizer
from tfrl.bandits.networks import network_outputs
from tfrl.bandits.policies import bandit_policy
from tfrl.networks import network
from tfrl.policies.utils import InfoFields
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


def scalarize_objectives(
    objectives_tensor: tf.Tensor, scalarizer: multi_objective_scalarizer.Scalarizer
) -> tf.Tensor:
    """Returns the rewards of arms, `[B, A]`.

    Args:
      objectives_tensor: The objectives M of the arms, `[B, M, A]`.
      scalarizer: Makes one reward of the objectives.

    Raises:
      ValueError: The shape is another.
    """
    objectives_tensor = tf.convert_to_tensor(objectives_tensor)
    if objectives_tensor.shape.rank != 3:
        raise ValueError(
            f"objectives_tensor: got shape {objectives_tensor.shape}, expected [B, M, "
            "A]; give the objectives of all arms."
        )
    columns = tf.transpose(objectives_tensor, [2, 0, 1])
    return tf.transpose(tf.vectorized_map(scalarizer, columns))


class GreedyMultiObjectiveNeuralPolicy(bandit_policy.BanditPolicy):
    """Predicts each objective with a network, and scalarizes them."""

    _scores_field = InfoFields.MULTIOBJECTIVE_SCALARIZED_PREDICTED_REWARDS_MEAN

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        scalarizer: multi_objective_scalarizer.Scalarizer,
        objective_networks: Sequence[types.Network | types.Layer],
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        accepts_per_arm_features: bool = False,
        emit_policy_info: Sequence[str] = (),
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Creates the policy; see `BanditPolicy` for other arguments.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: One bounded integer spec of shape `[]`, from 0.
          scalarizer: Makes one reward of the objectives.
          objective_networks: A network for each objective, with output `[B, A]` or a
            `QBanditNetworkResult`.
          observation_and_action_constraint_splitter: See `TFPolicy`.
          accepts_per_arm_features: See `BanditPolicy`.
          emit_policy_info: See `BanditPolicy`. The predicted rewards are those of the
            objectives, `[B, objectives, A]`; the scalarized ones have a field, too.
          name: The module's name.
          **kwargs: Further arguments of `BanditPolicy`.

        Raises:
          ValueError: There are fewer than two networks.
        """
        if len(objective_networks) < 2:
            raise ValueError(
                f"objective_networks: got {len(objective_networks)}, expected at least "
                "two; use GreedyRewardPredictionPolicy for one objective."
            )
        splitter = observation_and_action_constraint_splitter
        self._networks = [
            network_outputs.built(each, time_step_spec, splitter)[0]
            for each in objective_networks
        ]
        self._num_parts = len(self._networks)
        self._scalarizer = scalarizer
        super().__init__(
            time_step_spec,
            action_spec,
            emit_policy_info=emit_policy_info,
            accepts_per_arm_features=accepts_per_arm_features,
            observation_and_action_constraint_splitter=splitter,
            name=name,
            **kwargs,
        )

    @property
    def scalarizer(self) -> multi_objective_scalarizer.Scalarizer:
        """What makes one reward of the objectives."""
        return self._scalarizer

    @property
    def objective_networks(self) -> list[network.Network]:
        """The networks of the objectives."""
        return list(self._networks)

    def _is_pure_tensorflow(self) -> bool:
        """Returns False, as `set_parameters` of the scalarizer changes the program."""
        return False

    def _predict(self, observation: Any) -> bandit_policy.Prediction:
        parts = [
            network_outputs.rewards_of(each, observation) for each in self._networks
        ]
        parts = tf.stack(parts, axis=1)
        rewards = scalarize_objectives(parts, self._scalarizer)
        return bandit_policy.Prediction(rewards, parts=parts)
