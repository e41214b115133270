"""D4PG as an agent of Acme, which acts and learns in an `EnvironmentLoop`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

import keras

from tfrl.acme.agents.tf import replay_agent
from tfrl.agents import options
from tfrl.agents.ddpg import d4pg_agent
from tfrl.networks import network
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.specs import EnvironmentSpec
    from tfrl.typing import types


class D4PG(replay_agent.ReplayAgent):
    """A `D4pgAgent` with its own actor and replay, and with Acme's arguments."""

    def __init__(
        self,
        environment_spec: EnvironmentSpec,
        policy_network: types.Network | types.Layer,
        critic_network: types.Network | types.Layer,
        observation_network: types.Network | types.Layer | Callable | None = None,
        *,
        target_update_period: int = 100,
        policy_optimizer: types.Optimizer | None = None,
        critic_optimizer: types.Optimizer | None = None,
        sigma: types.FloatOrSchedule = 0.3,
        clipping: bool = True,
        **settings: Unpack[replay_agent.ReplaySettings],
    ) -> None:
        """Starts the agent's replay server.

        Args:
          environment_spec: The specs of the environment, such as
            `make_environment_spec` returns.
          policy_network: See `actor_network` of `D4pgAgent`.
          critic_network: See `D4pgAgent`.
          observation_network: See `D4pgAgent`; may also be a function of observations
            `[B, ...]`, such as `tf2_utils.batch_concat`.
          target_update_period: The number of learner steps between copies of the
            networks to their targets.
          policy_optimizer: The optimizer of the policy; None for Adam with a rate of
            1e-4.
          critic_optimizer: The optimizer of the critic and of the observation network;
            None as for the policy.
          sigma: The standard deviation of the noise on actions.
          clipping: Whether to clip the gradients of the policy and of the critic to the
            norm 40, and the gradient of the value with respect to the action to 1.
          **settings: See `ReplayOptions`.

        Raises:
          ValueError: A number is out of range, or a network does not fit the specs.
          TypeError: A keyword argument is not a setting, or has the wrong type.
        """
        (replay,) = options.from_settings(
            type(self), settings, [replay_agent.ReplayOptions]
        )
        number_checks.check_number("sigma", sigma, 0, remedy="0.3 is usual")
        critic_network = network.as_network(critic_network)

        def make_agent(time_step_spec: Any, action_spec: Any, seed: int) -> Any:
            return d4pg_agent.D4pgAgent(
                time_step_spec,
                action_spec,
                policy_network,
                critic_network,
                policy_optimizer or keras.optimizers.Adam(1e-4),
                critic_optimizer or keras.optimizers.Adam(1e-4),
                sigma,
                observation_network=replay_agent.as_network(observation_network),
                dqda_clipping=1.0 if clipping else None,
                target_update_period=target_update_period,
                gamma=replay.discount,
                n_step_update=1,
                gradient_clipping=40.0 if clipping else None,
                seed=seed,
            )

        super().__init__(
            environment_spec, make_agent, critic_network, replay, "d4pg_learner"
        )
