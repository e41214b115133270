"""MPO as an agent of Acme, which acts and learns in an `EnvironmentLoop`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

import keras
import tensorflow as tf

from tfrl.acme.agents.tf import replay_agent
from tfrl.agents import options
from tfrl.agents.mpo import mpo_agent
from tfrl.networks import network, sequential

if TYPE_CHECKING:
    from tfrl import losses
    from tfrl.specs import EnvironmentSpec
    from tfrl.typing import types


class MPO(replay_agent.ReplayAgent):
    """An `MpoAgent` with its own actor and replay, and with Acme's arguments."""

    _agent_class: type[mpo_agent.MpoAgent] = mpo_agent.MpoAgent
    _checkpoint_name = "mpo_learner"

    def __init__(
        self,
        environment_spec: EnvironmentSpec,
        policy_network: types.Network | types.Layer,
        critic_network: types.Network | types.Layer,
        observation_network: types.Network | types.Layer | Callable | None = None,
        *,
        target_policy_update_period: int = 100,
        target_critic_update_period: int = 100,
        policy_loss_module: losses.MPO | None = None,
        policy_optimizer: types.Optimizer | None = None,
        critic_optimizer: types.Optimizer | None = None,
        dual_optimizer: types.Optimizer | None = None,
        num_samples: int = 20,
        clipping: bool = True,
        **settings: Unpack[replay_agent.ReplaySettings],
    ) -> None:
        """Starts the agent's replay server.

        Args:
          environment_spec: The specs of the environment, such as
            `make_environment_spec` returns.
          policy_network: See `MpoAgent`.
          critic_network: See `MpoAgent`; values may also be `[B, 1]`, as in Acme.
          observation_network: See `MpoAgent`; may also be a function of observations
            `[B, ...]`, such as `tf2_utils.batch_concat`.
          target_policy_update_period: The number of learner steps between copies of the
            networks to their targets.
          target_critic_update_period: Must equal `target_policy_update_period`, because
            the agent copies all of its networks together.
          policy_loss_module: See `MpoAgent`.
          policy_optimizer: The optimizer of the policy; None for Adam with a rate of
            1e-4.
          critic_optimizer: The optimizer of the critic and of the observation network;
            None as for the policy.
          dual_optimizer: The optimizer of the dual variables; None for Adam with a rate
            of 1e-2.
          num_samples: See `MpoAgent`.
          clipping: Whether to clip the gradients of the policy and of the critic to
            the norm 40.
          **settings: See `ReplayOptions`.

        Raises:
          ValueError: A number is out of range, the two periods differ, or a network
            does not fit the specs.
          TypeError: A keyword argument is not a setting, or has the wrong type.
        """
        (replay,) = options.from_settings(
            type(self), settings, [replay_agent.ReplayOptions]
        )
        if target_policy_update_period != target_critic_update_period:
            raise ValueError(
                f"target_critic_update_period: got {target_critic_update_period}, "
                f"expected {target_policy_update_period}, the "
                "target_policy_update_period, since the agent copies all of its "
                "networks together; give both the same number."
            )
        critic_network = self._critic(critic_network)

        def make_agent(time_step_spec: Any, action_spec: Any, seed: int) -> Any:
            return self._agent_class(
                time_step_spec,
                action_spec,
                policy_network,
                critic_network,
                policy_optimizer or keras.optimizers.Adam(1e-4),
                critic_optimizer or keras.optimizers.Adam(1e-4),
                dual_optimizer or keras.optimizers.Adam(1e-2),
                observation_network=replay_agent.as_network(observation_network),
                policy_loss_module=policy_loss_module,
                num_samples=num_samples,
                target_update_period=target_policy_update_period,
                gamma=replay.discount,
                n_step_update=1,
                gradient_clipping=40.0 if clipping else None,
                seed=seed,
            )

        super().__init__(
            environment_spec,
            make_agent,
            critic_network,
            replay,
            self._checkpoint_name,
        )

    @staticmethod
    def _critic(given: Any) -> network.Network:
        """Returns the critic as a network of numbers `[B]`."""
        return sequential.Sequential([network.as_network(given), _Numbers()])


class _Numbers(keras.layers.Layer):
    """Removes the last dimension of values `[B, 1]`."""

    takes_one_outer_dim = True

    def call(self, values: tf.Tensor) -> tf.Tensor:
        has_more = values.shape.rank == 2 and values.shape[-1] == 1
        return tf.squeeze(values, -1) if has_more else values
