"""Thompson's sampling with networks that are drawn: by dropout, or from several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.bandits.agents import bandit_agent, greedy_reward_prediction_agent
from tfrl.bandits.networks import drawn_networks
from tfrl.bandits.policies import greedy_reward_prediction_policy
from tfrl.policies import utils as policy_utils
from tfrl.policies.acting import validation
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds

# The probabilities that a Poisson number with mean 1 is at most 0, 1, 2 ...
_POISSON = np.cumsum(np.exp(-1.0) / np.cumprod([1, *range(1, 9)])).astype(np.float32)


class DrawnNetworkAgent(greedy_reward_prediction_agent.GreedyRewardPredictionAgent):
    """Base of agents of which each row draws a network."""

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        optimizer: types.Optimizer | None,
        network_class: Callable[..., Any],
        settings: tuple[Any, ...],
        splitter: types.Splitter | None,
        seed: int | None,
        **kwargs: Any,
    ) -> None:
        """Makes the network; see `GreedyRewardPredictionAgent` for other arguments.

        Args:
          network_class: The network's class. Its first arguments are the spec of an
            observation and the number of arms.
          settings: Its further arguments before the `seed`.
          splitter: The `observation_and_action_constraint_splitter`.
          seed: Seeds the network, what is drawn in training, and the policy.
        """
        validation.check_time_step_spec(time_step_spec)
        network = network_class(
            policy_utils.network_observation_spec(time_step_spec.observation, splitter),
            policy_utils.get_num_actions_from_tensor_spec(action_spec),
            *settings,
            seed=seed,
        )
        network.create_variables()
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

    def _update_seed(self) -> tf.Tensor:
        """Returns the seed of this update's draws, int64 `[2]`."""
        return tf.stack([self._seed, tf.cast(self.train_step_counter, tf.int64)])


class DropoutThompsonSamplingAgent(DrawnNetworkAgent):
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
        super().__init__(
            time_step_spec,
            action_spec,
            optimizer,
            drawn_networks.DropoutRewardNetwork,
            (network_layers, dropout_rate, dropout_only_top_layer, heteroscedastic),
            observation_and_action_constraint_splitter,
            seed,
            **kwargs,
        )

    def _make_policy(self, **kwargs: Any) -> Any:
        return greedy_reward_prediction_policy.DropoutPolicy(**kwargs)

    def _output(self, observation: Any, training: bool) -> Any:
        seed = self._update_seed() if training else None
        return self._reward_network.draw(observation, seed)


class BootstrappedAgent(DrawnNetworkAgent):
    """Trains each of K networks with every row a random number of times.

    The numbers are independent, and Poisson distributed with mean 1, as if each network
    had a sample of the rows with replacement (Oza and Russell, "Online bagging and
    boosting", 2001). A network drawn for each row chooses its arm (Osband and Van Roy,
    "Bootstrapped Thompson sampling and deep exploration", 2015, arXiv:1507.00300). See
    each row once.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        optimizer: types.Optimizer | None,
        network_layers: Sequence[int],
        num_heads: int = 10,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        *,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Makes the networks; see `GreedyRewardPredictionAgent` for other arguments.

        Args:
          network_layers: The numbers of units of the hidden layers.
          num_heads: The number of networks, K.
          observation_and_action_constraint_splitter: See
            `GreedyRewardPredictionAgent`.
          seed: Seeds the networks, the numbers of the rows, and the policy.
        """
        number_checks.check_sizes(num_heads=num_heads)

        super().__init__(
            time_step_spec,
            action_spec,
            optimizer,
            drawn_networks.EnsembleRewardNetwork,
            (network_layers, num_heads),
            observation_and_action_constraint_splitter,
            seed,
            **kwargs,
        )

    def _make_policy(self, **kwargs: Any) -> Any:
        ensemble = kwargs.pop("reward_network")
        if kwargs["accepts_per_arm_features"] or kwargs.pop("constraints"):
            raise ValueError(
                "accepts_per_arm_features, constraints: got some, expected none for a "
                "BootstrappedAgent; use NeuralEpsilonGreedyAgent."
            )
        return greedy_reward_prediction_policy.BootstrappedPolicy(
            ensemble=ensemble, **kwargs
        )

    def _errors(
        self, rows: bandit_agent.Rows, reward: tf.Tensor, training: bool
    ) -> tf.Tensor:
        predicted = self._output(rows.observation, training)
        chosen = tf.gather(predicted, rows.action, axis=2, batch_dims=1)
        errors = self._error_loss_fn(
            reward[:, tf.newaxis] * tf.ones_like(chosen), chosen
        )
        if training:
            errors *= poisson(self._update_seed(), tf.shape(errors))
        return tf.reduce_mean(errors, axis=1)


def poisson(seed: tf.Tensor, shape: Any) -> tf.Tensor:
    """Returns Poisson numbers with mean 1, float32, up to 9; a function of the seed."""
    unit = seeds.uniform(seed, shape)
    above = unit[..., tf.newaxis] >= tf.constant(_POISSON)
    return tf.reduce_sum(tf.cast(above, tf.float32), axis=-1)
