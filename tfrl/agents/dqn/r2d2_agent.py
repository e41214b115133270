"""R2D2: DQN that learns from sequences with a recurrent network.

The network learns from sequences of any length, which begin anywhere in an episode. It
starts from the state that the collecting policy recorded there, and its first steps,
the burn-in, only bring the state up to date. After them, the loss of a step is
L(h(G) - Q(s, a)) with the n-step return of rescaled values

    G = r_1 + ... + gamma^(n-1) r_n + gamma^n h^-1(Q_target(s_n, argmax_a Q(s_n, a)))
    h(x) = sign(x) (sqrt(|x| + 1) - 1) + 0.001 x

Kapturowski et al., "Recurrent experience replay in distributed reinforcement learning"
(2019), sections 2.3 and 3. `losses.sequence_priorities` computes its priorities.

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents import R2d2Agent
>>> from tfrl.networks import QRnnNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([4], tf.float32)
>>> action_spec = BoundedTensorSpec([], tf.int64, 0, 1)
>>> agent = R2d2Agent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     QRnnNetwork(observation_spec, action_spec, lstm_size=(16,)),
...     keras.optimizers.Adam(1e-3),
...     burn_in_length=10,
... )
>>> agent.collect_data_spec.policy_info["policy_state"][0].shape.as_list()
[16]
"""

from __future__ import annotations

from typing import Any, Unpack

import tensorflow as tf

from tfrl import losses
from tfrl.agents import transitions as transitions_lib
from tfrl.agents.dqn import dqn_agent
from tfrl.policies import state_recording_policy, tf_policy
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks


class R2d2Agent(dqn_agent.DqnAgent):
    """A Double DQN agent for recurrent networks, with burn-in and rescaled values.

    The Q-network predicts h of the returns, and the losses and errors in
    `LossInfo.extra` are in these units. The `td_error` leaves out the burn-in: `[B, T -
    1 - burn_in_length]`.
    """

    _double_q = True

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        q_network: types.Network,
        optimizer: types.Optimizer | None,
        *,
        burn_in_length: int = 40,
        stores_state: bool = True,
        **settings: Unpack[dqn_agent.DqnSettings],
    ) -> None:
        """Builds the target network and the policies.

        The defaults are the paper's: returns of 5 steps, a gamma of 0.997, and targets
        that are copied after every 2,500 updates. The paper's sequences have 40 steps
        of burn-in and 80 to learn from, 121 frames in all.

        Args:
          time_step_spec: See `DqnAgent`.
          action_spec: See `DqnAgent`.
          q_network: A recurrent network, such as a `QRnnNetwork`.
          optimizer: See `DqnAgent`.
          burn_in_length: The number of steps at the beginning of a sequence that only
            bring the network's state up to date. The sequences for `train` must be
            longer.
          stores_state: Whether `collect_policy` records its state in each frame. If
            not, sequences start from the initial state.
          **settings: The optional arguments of `DqnAgent`. `td_errors_loss_fn` is half
            the squared error by default.

        Raises:
          ValueError: The network is not recurrent, `burn_in_length` is negative, or an
            argument of `DqnAgent` is wrong or has no meaning here.
        """
        number_checks.check_integer(
            "burn_in_length", burn_in_length, 0, remedy="0 learns from all steps"
        )
        self._burn_in_length = burn_in_length
        self._stores_state = stores_state
        defaults: dqn_agent.DqnSettings = {
            "n_step_update": 5,
            "gamma": 0.997,
            "target_update_period": 2_500,
            "td_errors_loss_fn": losses.half_squared_difference,
        }
        super().__init__(
            time_step_spec, action_spec, q_network, optimizer, **(defaults | settings)
        )

    def _check_network_output(self, net: Any, label: str) -> None:
        super()._check_network_output(net, label)
        if not tf.nest.flatten(net.state_spec):
            raise ValueError(
                f"{label}: got {net.name!r}, which has no state, expected a recurrent "
                "network, such as a QRnnNetwork; use DdqnAgent for others."
            )

    def _setup_policy(
        self, *args: Any, **kwargs: Any
    ) -> tuple[tf_policy.TFPolicy, tf_policy.TFPolicy]:
        policy, collect_policy = super()._setup_policy(*args, **kwargs)
        if self._stores_state:
            collect_policy = state_recording_policy.StateRecordingPolicy(
                collect_policy, seed=self._policy_seed
            )
        return policy, collect_policy

    def _transitions(
        self, experience: Any, gamma: Any = None, reward_scale_factor: Any = None
    ) -> transitions_lib.Transitions:
        """Returns the transitions after the burn-in, with both networks' states."""
        transition = self._read.convert(experience)
        state = transitions_lib.first_state(
            transition.action_step.info, self._q_network.state_spec
        )
        before, transition = transitions_lib.split(transition, self._burn_in_length)
        states = [
            self._burn_in(network, before, state)
            for network in (self._q_network, self._target_q_network)
        ]
        transitions = self._read.of(transition, gamma, reward_scale_factor)
        return transitions._replace(states=states)

    def _burn_in(self, network: Any, time_step: ts.TimeStep, state: Any) -> Any:
        """Returns a network's state after the time steps, without gradient."""
        if self._burn_in_length:
            observation, _ = self._split(time_step.observation)
            _, state = network(
                observation, step_type=time_step.step_type, network_state=state
            )
        return tf.nest.map_structure(tf.stop_gradient, state)

    def _predictions(
        self, transitions: transitions_lib.Transitions, training: bool = False
    ) -> tf.Tensor:
        state, _ = transitions.states
        output = self._apply_network(
            self._q_network, transitions.time_step, training, network_state=state
        )
        return losses.action_value(output, transitions.action)

    def _next_output(self, transitions: transitions_lib.Transitions) -> tf.Tensor:
        time_step = transitions.next_time_step
        judge, target = (
            self._apply_network(network, time_step, network_state=state)
            for network, state in zip(
                (self._q_network, self._target_q_network),
                transitions.states,
                strict=True,
            )
        )
        return transitions.at_next(self._at_best_actions(target, judge, time_step))

    def _values_of(self, network_output: tf.Tensor) -> tf.Tensor:
        return losses.signed_parabolic(network_output)

    def _td_error(
        self, predictions: tf.Tensor, transitions: transitions_lib.Transitions
    ) -> tuple[tf.Tensor, tf.Tensor]:
        values = self._values_of(self._next_output(transitions))
        returns = losses.td_target(transitions.reward, transitions.discount, values)
        targets = losses.signed_hyperbolic(returns)
        return transitions.loss_fn(targets, predictions), targets - predictions
