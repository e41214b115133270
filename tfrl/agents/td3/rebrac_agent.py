"""ReBRAC: TD3 with penalties on unlike actions in actor and critics, for recordings.

With the recorded pair (s, a) and the recorded next action a'', TD3's target action a'
and |.|^2 the sum over the dimensions of actions scaled to [-1, 1], the critics minimise
L(y - Q_i(s, a)) with

    y = r + gamma * d * (min_i Q_i_target(s', a') - beta_2 * |a' - a''|^2)

and the actor mu minimises

    beta_1 * |mu(s) - a|^2 - min_i Q_i(s, mu(s)) / mean |min_i Q_i(s, mu(s))|

where the denominator is the batch's mean, without a gradient. At a time limit there is
no next action, and no penalty. Tarasov et al., "Revisiting the minimalist approach to
offline reinforcement learning" (2023, arXiv:2305.09836), section 3, with the minimum
and the denominator of the authors' code.

>>> import keras
>>> import tensorflow as tf
>>> from tfrl import networks
>>> from tfrl.agents.td3 import RebracAgent
>>> from tfrl.networks.layers import bodies
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([3], tf.float32)
>>> action_spec = BoundedTensorSpec([1], tf.float32, -2, 2)
>>> specs = (observation_spec, action_spec)
>>> agent = RebracAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     networks.ActorNetwork(*specs, (64, 64)),
...     networks.CriticNetwork(
...         specs, joint_fc_layer_params=(64, 64), body=bodies.layer_normed
...     ),
...     actor_optimizer=keras.optimizers.Adam(1e-3),
...     critic_optimizer=keras.optimizers.Adam(1e-3),
...     actor_update_period=2,
...     target_update_period=2,
...     target_update_tau=0.005,
...     gamma=0.99,
... )
>>> agent.initialize()
"""

from __future__ import annotations

from typing import Any, Unpack

import tensorflow as tf

from tfrl import losses
from tfrl.agents import checks, critics, transitions, updates
from tfrl.agents.td3 import td3_agent
from tfrl.agents.td3.td3_bc_agent import mean_size, squared_distances
from tfrl.compilation import accelerators
from tfrl.losses import masking
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks


class RebracAgent(td3_agent.Td3Agent):
    """A ReBRAC agent."""

    _takes_bins = False

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        actor_network: types.Network | types.Layer,
        critic_network: types.Network | types.Layer,
        actor_optimizer: types.Optimizer | None,
        critic_optimizer: types.Optimizer | None,
        *,
        actor_penalty: float = 0.01,
        critic_penalty: float = 0.01,
        **settings: Unpack[td3_agent.Td3Settings],
    ) -> None:
        """Builds the second critic, the target networks and the policies.

        `Td3Agent`, `TdOptions` and `AgentOptions` explain the arguments that are not
        listed here.

        Args:
          critic_network: Its hidden layers should be normalized, such as those of a
            `CriticNetwork` with `body=networks.layers.bodies.layer_normed`.
          actor_penalty: The weight beta_1 of the actor's distance from the recorded
            actions.
          critic_penalty: The weight beta_2 of the target actions' distance from the
            recorded next actions.
          **settings: Further arguments of `Td3Agent`, with its defaults.

        Raises:
          ValueError: A penalty is negative, `n_step_update` is not 1, or an argument of
            `Td3Agent` is wrong.
          NotImplementedError: A network is recurrent.
        """
        for name, penalty in (
            ("actor_penalty", actor_penalty),
            ("critic_penalty", critic_penalty),
        ):
            number_checks.check_number(name, penalty, 0.0, remedy="0.01 is usual")
        if settings.get("n_step_update", 1) != 1:
            raise ValueError(
                f"n_step_update: got {settings['n_step_update']}, expected 1, since "
                "ReBRAC penalizes the action of the next step; leave it out."
            )
        super().__init__(
            time_step_spec,
            action_spec,
            actor_network,
            critic_network,
            actor_optimizer,
            critic_optimizer,
            **settings,
        )
        checks.check_not_recurrent(
            [self._actor_network, *self._critic_networks], "ReBRAC"
        )
        self._actor_penalty = actor_penalty
        self._critic_penalty = critic_penalty

    def _prepare(self, experience: Any, weights: tf.Tensor | None = None) -> Any:
        """Returns the transitions, with the next actions as their info."""
        data: transitions.Transitions = super()._prepare(experience, weights)
        if not hasattr(experience, "next_step_type"):
            raise ValueError(
                f"experience: got a {type(experience).__name__}, expected a Trajectory "
                "[B, 2, ...], since ReBRAC learns from the actions of the next steps, "
                "too; sample frames with num_steps=2."
            )
        return data._replace(
            info=accelerators.map_moved(lambda action: action[:, 1], experience.action)
        )

    def _critic_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `sum_i L(y - Q_i(s, a))`, and its details.

        Here `y = r + gamma d (min_i Q_i_target(s', a') - beta_2 |a' - a''|^2)`.
        """
        data = batch.data
        reached = data.next_time_step
        actions = self._target_actions(reached, batch.seed)
        values = critics.all_values(self._target_critic_networks, reached, actions)
        distance = masking.masked(
            squared_distances(self.action_spec, actions, data.info),
            ~reached.is_last(),
        )
        next_values = losses.penalized_value(
            losses.clipped_double_q(tf.unstack(values)), distance, self._critic_penalty
        )
        return self._regress(batch, data.targets(next_values))

    def _actor_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `beta_1 |mu(s) - a|^2 - min_i Q_i / scale`."""
        data = batch.data
        actions = critics.outputs(self._actor_network, data.time_step, batch.training)
        values = critics.all_values(self._critic_networks, data.time_step, actions)
        smallest = losses.clipped_double_q(tf.unstack(values))
        distance = squared_distances(self.action_spec, actions, data.action)
        loss = losses.cloned_policy_gradient(
            smallest,
            self._actor_penalty * distance,
            mean_size(smallest, critics.counted(batch)),
            alpha=1.0,
        )
        return critics.mean(loss, batch, self._actor_network), {}
