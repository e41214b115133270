"""Thompson's sampling with networks that dropout draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfrl.bandits.agents import greedy_reward_prediction_agent
from tfrl.bandits.networks import drawn_networks
from tfrl.bandits.policies import drawn_network_policies
from tfrl.policies import utils as policy_utils
from tfrl.policies.acting import validation
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils.random_numbers import seeds


class DropoutThompsonSamplingAgent(
    greedy_reward_prediction_agent.GreedyRewardPredictionAgent
):
    """Predicts rewards with dropout, in training and in acting (Gal and Ghahramani).

    "Dropout as a Bayesian approximation" (2016, arXiv:1506.02142): each mask draws a
    network, approximately from the posterior. Each row has its own mask.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        optimizer: types.Optimizer | None,
        dropout_rate: float | Callable[[], Any],
        network_layers: Sequence[int],
        dropout_only_top_layer: bool = True,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        heteroscedastic: bool = False,
        *,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Makes the network; see `GreedyRewardPredictionAgent` for other arguments.

        Args:
          dropout_rate: The share of units to drop, or a function that returns it.
          network_layers: The numbers of units of the hidden layers.
          dropout_only_top_layer: Whether only the last hidden layer drops units.
          observation_and_action_constraint_splitter: See
            `GreedyRewardPredictionAgent`.
          heteroscedastic: Whether the network also learns the variances of rewards.
          seed: Seeds the network, the masks and the policy.
        """
        validation.check_time_step_spec(time_step_spec)
        splitter = observation_and_action_constraint_splitter
        network = drawn_networks.DropoutRewardNetwork(
            policy_utils.network_observation_spec(time_step_spec.observation, splitter),
            policy_utils.get_num_actions_from_tensor_spec(action_spec),
            network_layers,
            dropout_rate,
            dropout_only_top_layer,
            heteroscedastic,
            seed=seed,
        )
        number = seeds.draw_number() if seed is None else seed
        self._seed = tf.Variable(number, dtype=tf.int64, trainable=False)
        super().__init__(
            time_step_spec,
            action_spec,
            network,
            optimizer,
            splitter,
            seed=seed,
            **kwargs,
        )

    def _make_policy(self, **kwargs: Any) -> Any:
        return drawn_network_policies.DropoutPolicy(**kwargs)

    def _output(self, observation: Any, training: bool) -> Any:
        counter = tf.cast(self.train_step_counter, tf.int64)
        seed = tf.stack([self._seed, counter]) if training else None
        return self._reward_network.draw(observation, seed)
