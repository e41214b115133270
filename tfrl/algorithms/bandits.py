"""Algorithms for bandits.

`LinUCB` (Li et al., 2010), `LinTS` (Agrawal and Goyal, 2013), `NeuralEpsilonGreedy` and
`NeuralLinUCB`. By default the settings are those of TF-Agents' example of a stationary
linear bandit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tfrl import agents, bandits, networks, specs, train
from tfrl.algorithms import mixins, on_policy, parts
from tfrl.algorithms.settings import (
    COUNT,
    FRACTION,
    FROM_0,
    SIZE,
    check_layers,
    field,
    live,
    log,
)
from tfrl.environments import native


class Bandit(on_policy.Rollouts):
    """The base of the algorithms that learn from single rounds.

    An episode is a round, so a return is a reward.
    """

    actions = "discrete"
    environment_name = "LinearBandit-v0"
    takes_masks = True
    _regret = None

    num_iterations: int = 2_000
    num_eval_episodes: int = 1_000
    eval_interval: int = 200
    log_interval: int = 50
    checkpoint_interval: int = 1_000
    collect_steps_per_iteration: int = 2

    def agent_class(self) -> Any:
        """Returns the agent's class."""
        return getattr(bandits.agents, self.agent_name)

    def make_networks(self) -> dict[str, Any]:
        """Makes no network; see `Algorithm.make_networks`.

        Raises:
          ValueError: There is an encoder of the program's own.
        """
        if self.own_encoder is not None:
            raise ValueError(
                f"encoder: got one, but {self.title} has no network; leave it out."
            )
        return {}

    @property
    def has_arm_features(self) -> bool:
        """Whether the environment's arms have features."""
        spec = self.observation_spec
        return isinstance(spec, dict) and "per_arm" in spec

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "accepts_per_arm_features": self.has_arm_features,
        }

    def make_agent(self) -> Any:
        """Makes the agent, whose policy is greedy.

        The agents of `tfrl.bandits` have one policy, which explores. Here `policy`
        takes the most probable arm, as for other algorithms.
        """
        agent = super().make_agent()
        agent.act_greedily()
        return agent

    def make_loop(self, agent: agents.TFAgent) -> train.OnPolicyLoop:
        """Makes the loop, which adds up the regret if the environment knows it.

        Raises:
          ValueError: The environment is no bandit, or there is a replay buffer.
        """
        if not self.environment.is_bandit:
            given = self.own_environment
            name = self.world.name or getattr(given, "__name__", type(given).__name__)
            raise ValueError(
                f"environment: got {name!r}, expected a bandit, whose every step is a "
                f"round, for {self.title}; give LinearBandit-v0, say, or, of your own, "
                "a subclass of tfrl.bandits.environments.BanditPyEnvironment with "
                "_observe and _apply_action."
            )
        environment, regrets = self.environment, []
        if isinstance(environment, native.NativeEnvironment):
            with train.device_scope(self.device):
                regrets = [bandits.metrics.CumulativeRegretMetric(environment)]
            self._regret = regrets[0]
        steps = self.collect_steps_per_iteration
        return parts.on_policy_loop(self, agent, steps, regrets)

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


class LinearModels(Bandit):
    """The base of the algorithms with a linear model of each arm, or one for all."""

    alpha: float = live(
        "Factor of the standard deviations by which it explores.",
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

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "alpha": self.alpha,
            "gamma": self.gamma,
            "tikhonov_weight": self.tikhonov_weight,
        }


class Linear(LinearModels):
    """The base of the algorithms whose models take the observation's own features."""

    add_bias: bool = field("Whether a 1 follows the features.", default=False)

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {**super().agent_arguments(), "add_bias": self.add_bias}


class LinUCB(Linear):
    """LinUCB: upper confidence bounds of linear models (Li et al., 2010)."""

    name = "lin_ucb"
    title = "LinUCB"
    agent_name = "LinearUCBAgent"


class LinTS(Linear):
    """Thompson's sampling with linear models (Agrawal and Goyal, 2013)."""

    name = "lin_ts"
    title = "LinTS"
    agent_name = "LinearThompsonSamplingAgent"


class Neural(
    mixins.Epsilon, mixins.GradientNorm, mixins.OneRate, mixins.Activation, Bandit
):
    """The base of the algorithms with a network."""

    fc_layer_params: Sequence[int] = field(
        "Units of the hidden layers; with arm features, of each of three parts.",
        check_layers,
        default=(50, 50, 50),
    )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        optimizer = parts.adam(
            self.learning_rate, global_clipnorm=self.max_gradient_norm or None
        )
        return {**super().agent_arguments(), "optimizer": optimizer}

    def make_network(self, num_outputs: int) -> networks.Network:
        """Makes a network of observations, whose last layer is linear."""
        network: networks.Network = networks.QNetwork(
            self.observation_spec,
            specs.tensor_spec.BoundedTensorSpec([], "int32", 0, num_outputs - 1),
            fc_layer_params=self.fc_layer_params,
            seed=self.seed,
            **parts.activation(self),
            **networks.observation_encoder(
                self.observation_spec, encoder=self.own_encoder
            ),
        )
        return network

    def make_tower(self, output_dim: int) -> networks.Network:
        """Makes a network of arms with features, which gives each so many numbers.

        Global features, the features of an arm, and both together pass
        `fc_layer_params` each.

        Raises:
          ValueError: There is an encoder of the program's own.
        """
        if self.own_encoder is not None:
            raise ValueError(
                f"encoder: got one for arms with features, expected none: {self.title} "
                "has a network of three parts; give the whole network, by network=..."
            )
        layers = self.fc_layer_params
        return bandits.networks.create_feed_forward_common_tower_network(
            self.observation_spec,
            *(layers, layers, layers),
            output_dim,
            seed=self.seed,
            **parts.activation(self),
        )


class NeuralEpsilonGreedy(Neural):
    """A network predicts rewards; some arms are random ones."""

    name = "neural_epsilon_greedy"
    title = "neural epsilon-greedy"
    agent_name = "NeuralEpsilonGreedyAgent"

    def make_networks(self) -> dict[str, Any]:
        """Makes the network of rewards; see `Algorithm.make_networks`."""
        if self.has_arm_features:
            return {"reward_network": self.make_tower(1)}
        num_arms = self.environment.action_spec().maximum + 1
        return {"reward_network": self.make_network(int(num_arms))}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {**super().agent_arguments(), "epsilon": self.final_epsilon}


class NeuralLinUCB(Neural, LinearModels):
    """A network learns rewards; later LinUCB on its outputs.

    Riquelme et al. (2018), neural linear, with LinUCB's bounds.
    """

    name = "neural_lin_ucb"
    title = "NeuralLinUCB"
    agent_name = "NeuralLinUCBAgent"

    alpha: float = 1.0
    encoding_dim: int = field(
        "Outputs of the network, which are features of the linear models.",
        SIZE,
        default=9,
    )
    encoding_iterations: int = field(
        "Iterations that train the network; later ones train the linear models.",
        COUNT,
        default=1_000,
    )

    def make_networks(self) -> dict[str, Any]:
        """Makes the encoding network; see `Algorithm.make_networks`."""
        if self.has_arm_features:
            return {"encoding_network": self.make_tower(self.encoding_dim)}
        return {"encoding_network": self.make_network(self.encoding_dim)}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "encoding_dim": self.encoding_dim,
            "encoding_network_num_train_steps": self.encoding_iterations,
            "epsilon_greedy": self.final_epsilon,
        }
