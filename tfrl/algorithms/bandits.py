"""Algorithms for bandits: `LinUCB` (Li et al., 2010)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tfrl import agents, bandits, train
from tfrl.algorithms import algorithm
from tfrl.algorithms.settings import (
    ENVIRONMENTS,
    FRACTION,
    FROM_0,
    SIZE,
    field,
    live,
    log,
)
from tfrl.environments import native


class Bandit(algorithm.Algorithm):
    """The base of the algorithms that learn from single rounds.

    An episode is a round, so a return is a reward.
    """

    actions = "discrete"
    environment_name = "LinearBandit-v0"
    _regret = None
    without_settings = frozenset(
        {"dtype", "conv_layer_params", "activation", "emulator", "grid_observations"}
    )

    num_iterations: int = 2_000
    num_eval_episodes: int = 1_000
    eval_interval: int = 200
    log_interval: int = 50
    checkpoint_interval: int = 1_000

    num_envs: int = field("Environments stepped together.", ENVIRONMENTS, default=8)
    collect_steps_per_iteration: int = field(
        "Rounds of each environment in an iteration.", SIZE, default=2
    )

    @classmethod
    def fitted(cls, values: Mapping[str, Any], num_envs: int) -> dict[str, Any]:
        """Returns changes that keep the number of rounds in an iteration."""
        rounds = values["collect_steps_per_iteration"] * values["num_envs"]
        steps = max(rounds // num_envs, 1)
        return {"num_envs": num_envs, "collect_steps_per_iteration": steps}

    def agent_class(self) -> Any:
        """Returns the agent's class."""
        return getattr(bandits.agents, self.agent_name)

    def make_networks(self) -> dict[str, Any]:
        """Makes no network; see `Algorithm.make_networks`."""
        return {}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        spec = self.observation_spec
        return {
            "accepts_per_arm_features": isinstance(spec, dict) and "per_arm" in spec,
            "seed": self.seed,
        }

    def make_loop(self, agent: agents.TFAgent) -> train.OnPolicyLoop:
        """Makes the loop, which adds up the regret if the environment knows it.

        Raises:
          ValueError: The environment is no bandit, or there is a replay buffer.
        """
        self.refuse_replay()
        if not self.environment.is_bandit:
            raise ValueError(
                f"environment: got {self.world.name!r}, expected a bandit, whose every "
                f"step is a round, for {self.title}; see tfrl.bandits.environments."
            )
        environment, regrets = self.environment, []
        if isinstance(environment, native.NativeEnvironment):
            regrets = [bandits.metrics.CumulativeRegretMetric(environment)]
            self._regret = regrets[0]
        return train.OnPolicyLoop(
            environment,
            agent,
            regrets,
            collect_steps_per_iteration=self.collect_steps_per_iteration,
            seed=self.seed,
            jit_compile="auto" if self.jit_compile else False,
        )

    @property
    def steps_per_iteration(self) -> int:
        """The rounds of an iteration."""
        return self.collect_steps_per_iteration * self.num_envs

    def make_view(self) -> train.RunView | None:
        """Returns what logs the regret; None for an environment that has none."""
        regret = self._regret
        return None if regret is None else RegretView(self.loop, regret, self.num_envs)


class RegretView:
    """Logs the regret of a bandit that knows it; a `train.RunView`."""

    def __init__(self, loop: train.OnPolicyLoop, regret: Any, num_envs: int) -> None:
        """Keeps the loop and its `CumulativeRegretMetric`."""
        self._loop, self._regret, self._num_envs = loop, regret, num_envs

    def measure(self) -> dict[str, float]:
        """Returns the regret of one environment so far, and of a round on average."""
        regret = float(self._regret.result())
        rounds = self._loop.info().environment_steps / self._num_envs
        mean = regret / rounds if rounds else math.nan
        return {"cumulative_regret": regret, "regret_per_round": mean}

    def words(self) -> list[str]:
        """Returns the regret so far."""
        return [f"regret {float(self._regret.result()):.4g}"]


class LinUCB(Bandit):
    """LinUCB: upper confidence bounds of linear models (Li et al., 2010).

    By default the settings are those of TF-Agents' example of a stationary linear
    bandit.
    """

    name = "lin_ucb"
    title = "LinUCB"
    agent_name = "LinearUCBAgent"

    alpha: float = live(
        "Standard deviations that the bound adds to the mean.",
        FROM_0,
        log(0.01, 10.0),
        default=0.1,
    )
    gamma: float = field(
        "How much of an arm's sums each of its rows keeps; 1: all.",
        FRACTION,
        default=1.0,
    )
    tikhonov_weight: float = field(
        "Weight of the squared parameters in the least squares.", FROM_0, default=1.0
    )
    add_bias: bool = field("Whether a 1 follows the features.", default=False)

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "alpha": self.alpha,
            "gamma": self.gamma,
            "tikhonov_weight": self.tikhonov_weight,
            "add_bias": self.add_bias,
        }
