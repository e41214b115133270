"""`REINFORCE`: the policy gradient of whole episodes (Williams, 1992)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tfrl import agents, environments, networks, replay_buffers, train
from tfrl.algorithms import algorithm, parts
from tfrl.algorithms.settings import (
    DISCOUNTS,
    ENTROPIES,
    ENVIRONMENTS,
    FRACTION,
    FROM_0,
    RATES,
    SIZE,
    Settings,
    check_layers,
    field,
)


class REINFORCESettings(Settings):
    """The settings of REINFORCE: one hidden layer, two episodes per update.

    A compiled loop is three times faster on CartPole-v0, but compilation takes as much
    time as it saves in 250 iterations.
    """

    defaults: ClassVar = {
        "jit_compile": False,
        "num_iterations": 250,
        "eval_interval": 25,
        "log_interval": 5,
        "checkpoint_interval": 25,
    }

    num_envs: int = field(1, "Environments stepped together.", ENVIRONMENTS)
    collect_episodes_per_iteration: int = field(2, "Episodes in an update.", SIZE)
    replay: str = field(
        "uniform", "Only uniform; for others see train_reinforce_service."
    )
    replay_capacity: int = field(2_000, "Size of the buffer, in frames.", SIZE)
    fc_layer_params: tuple[int, ...] = field(
        (100,), "Units of the hidden layers.", check_layers
    )
    learning_rate: float = field(1e-3, "Learning rate of Adam.", FROM_0, search=RATES)
    gamma: float = field(1.0, "Discount per step.", FRACTION, search=DISCOUNTS)
    normalize_returns: bool = field(
        True, "Normalize returns to mean 0 and standard deviation 1."
    )
    use_baseline: bool = field(False, "Train a state-value baseline.")
    entropy_regularization: float = field(
        0.0, "Weight of the policy's entropy in the loss.", FROM_0, search=ENTROPIES
    )

    @classmethod
    def check_together(cls, values: Any, remedy_for: Callable[[str], str]) -> None:
        """Checks that each environment gives the same number of episodes."""
        episodes, num_envs = (
            values["collect_episodes_per_iteration"],
            values["num_envs"],
        )
        if episodes % num_envs:
            raise ValueError(
                "collect_episodes_per_iteration: expected a multiple of num_envs, "
                f"{num_envs}, got {episodes}; "
                f"{remedy_for('collect_episodes_per_iteration')}."
            )
        if values["replay_capacity"] < num_envs:
            raise ValueError(
                f"replay_capacity: expected at least {num_envs:,}, a frame of each "
                f"environment (num_envs), got {values['replay_capacity']}; "
                f"{remedy_for('replay_capacity')}."
            )


class REINFORCE(algorithm.Algorithm):
    """REINFORCE, optionally with a baseline (Williams, 1992)."""

    Settings = REINFORCESettings
    name = "reinforce"
    title = "REINFORCE"
    agent_name = "ReinforceAgent"
    environment_name = "CartPole-v0"
    supports_sweep = False

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor, and the baseline if the settings have one."""
        s = self.settings
        common = parts.network_arguments(s, self.observation_spec)
        actor = networks.ActorDistributionNetwork(
            self.observation_spec,
            self.environment.action_spec(),
            fc_layer_params=s.fc_layer_params,
            seed=s.seed,
            **common,
        )
        baseline = None
        if s.use_baseline:
            baseline = networks.ValueNetwork(
                self.observation_spec,
                fc_layer_params=s.fc_layer_params,
                seed=s.seed + 1,
                **common,
            )
        return {"actor_network": actor, "value_network": baseline}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        import keras  # Not at the top: --help does not wait for TensorFlow.

        s = self.settings
        return {
            "optimizer": keras.optimizers.Adam(s.learning_rate),
            "gamma": s.gamma,
            "normalize_returns": s.normalize_returns,
            "entropy_regularization": s.entropy_regularization,
            "seed": s.seed,
        }

    def make_loop(self, agent: agents.TFAgent) -> train.EpisodicLoop:
        """Makes the loop, with its buffer; see `Algorithm.make_loop`."""
        s = self.settings
        buffer = self.own_buffer(agent)
        if buffer is None:
            buffer = make_replay_buffer(s, self.environment, agent)
        return train.EpisodicLoop(
            self.environment,
            agent,
            buffer,
            collect_episodes_per_iteration=s.collect_episodes_per_iteration,
            seed=s.seed,
            jit_compile="auto" if s.jit_compile else False,
        )


def make_replay_buffer(
    s: Any, environment: environments.TFEnvironment, agent: agents.TFAgent
) -> replay_buffers.TFUniformReplayBuffer:
    """Makes the buffer for the episodes of an iteration.

    Raises:
      ValueError: The settings name another kind of replay.
    """
    if s.replay != "uniform":
        raise ValueError(
            f"replay: got {s.replay!r}, expected 'uniform'; for 'service', "
            "a queue in a server, take the example train_reinforce_service."
        )
    # On the CPU, where the environment fills it.
    with train.device_scope("CPU:0"):
        return replay_buffers.TFUniformReplayBuffer(
            agent.collect_data_spec,
            batch_size=environment.batch_size,
            max_length=s.replay_capacity // environment.batch_size,
            seed=s.seed,
        )
