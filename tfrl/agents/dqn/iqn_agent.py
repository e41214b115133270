"""IQN: implicit quantile networks.

This is QR-DQN with a network that takes the fractions of the quantiles as an input. The
loss of a transition has N fractions tau_i for the predictions and N' fractions tau'_j
for the targets; each update draws all of them uniformly. Dabney et al., "Implicit
quantile networks for distributional reinforcement learning" (2018, arXiv:1806.06923),
equation 3. The policies and the targets choose actions by the mean over evenly spaced
fractions; see `ImplicitQuantileNetwork`.

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents import IqnAgent
>>> from tfrl.networks import ImplicitQuantileNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([4], tf.float32)
>>> action_spec = BoundedTensorSpec([], tf.int64, 0, 1)
>>> agent = IqnAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     ImplicitQuantileNetwork(observation_spec, action_spec),
...     keras.optimizers.Adam(1e-3),
...     num_quantiles=8,
...     num_target_quantiles=8,
...     gamma=0.99,
... )
>>> agent.train_sequence_length
2
"""

from __future__ import annotations

from typing import Any, Unpack

import tensorflow as tf

from tfrl import losses
from tfrl.agents import checks, updates
from tfrl.agents.dqn import dqn_agent, qr_dqn_agent
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds


class IqnAgent(qr_dqn_agent.QrDqnAgent):
    """A QR-DQN agent whose fractions are random."""

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        q_network: types.Network,
        optimizer: types.Optimizer | None,
        *,
        num_quantiles: int = 64,
        num_target_quantiles: int = 64,
        double_q: bool = False,
        huber_param: float = 1.0,
        **settings: Unpack[dqn_agent.DqnSettings],
    ) -> None:
        """Builds the target network and the policies.

        Args:
          time_step_spec: See `DqnAgent`.
          action_spec: See `DqnAgent`.
          q_network: An `ImplicitQuantileNetwork`, or another network whose `call` takes
            `fractions` `[B, N]` and returns quantiles `[B, n, N]`.
          optimizer: See `DqnAgent`.
          num_quantiles: The number N of fractions of the predictions; 8 is nearly as
            good as 64.
          num_target_quantiles: The number N' of fractions of the targets.
          double_q: See `QrDqnAgent`.
          huber_param: See `QrDqnAgent`.
          **settings: See `QrDqnAgent`.

        Raises:
          ValueError: See `QrDqnAgent`, or a number of fractions is not positive.
          NotImplementedError: The network is recurrent.
        """
        for name, number in (
            ("num_quantiles", num_quantiles),
            ("num_target_quantiles", num_target_quantiles),
        ):
            number_checks.check_integer(name, number, 1, remedy="8 or 64 are usual")
        super().__init__(
            time_step_spec,
            action_spec,
            q_network,
            optimizer,
            double_q=double_q,
            huber_param=huber_param,
            **settings,
        )
        checks.check_not_recurrent(
            [self._q_network], "IQN", "use QrDqnAgent, or a network of several frames"
        )
        self._num_quantiles = num_quantiles
        self._num_target_quantiles = num_target_quantiles
        seed = settings.get("seed")
        self._seed = tf.Variable(
            seeds.draw_number() if seed is None else seed,
            dtype=tf.int64,
            trainable=False,
            name="seed",
        )

    def _batch(
        self, experience: Any, *arguments: Any, seed: Any = None, **kwargs: Any
    ) -> updates.Batch:
        if seed is not None:
            # The hooks of `DqnAgent` that draw the fractions take no seed.
            raise TypeError(
                f"seed: got {seed}, expected None, since IqnAgent draws its fractions "
                "from its own seed and the number of the update; give the constructor "
                "the seed."
            )
        return super()._batch(experience, *arguments, **kwargs)

    def _compute_q_values(
        self, time_steps: ts.TimeStep, actions: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        output = self._apply_network(
            self._q_network,
            time_steps,
            training,
            fractions=self._fractions(tf.shape(actions)[0]),
        )
        return losses.action_value(output, actions)

    def _compute_next_q_values(
        self, next_time_steps: ts.TimeStep, info: Any
    ) -> tf.Tensor:
        del info
        judging = self._q_network if self._double_q else self._target_q_network
        judge = self._apply_network(judging, next_time_steps)
        target = self._apply_network(
            self._target_q_network,
            next_time_steps,
            fractions=self._target_fractions(tf.shape(next_time_steps.step_type)[0]),
        )
        return self._at_best_actions(target, judge, next_time_steps)

    def _levels(self, predictions: tf.Tensor) -> tf.Tensor:
        return self._fractions(tf.shape(predictions)[0])

    def _fractions(self, batch_size: tf.Tensor) -> tf.Tensor:
        """Returns the predictions' fractions, `[B, N]`, the same in each call."""
        seed, _ = self._seeds()
        return seeds.uniform(seed, [batch_size, self._num_quantiles])

    def _target_fractions(self, batch_size: tf.Tensor) -> tf.Tensor:
        """Returns the targets' fractions, `[B, N']`."""
        _, seed = self._seeds()
        return seeds.uniform(seed, [batch_size, self._num_target_quantiles])

    def _seeds(self) -> list[tf.Tensor]:
        """Returns the update's seeds for the predictions and for the targets."""
        counter = tf.cast(self.train_step_counter, tf.int64)
        return seeds.split_seed(tf.stack([self._seed, counter]), 2)
