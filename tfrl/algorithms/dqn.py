"""DQN and the algorithms based on it, which learn the values of discrete actions.

`DQN` (Mnih et al., 2015), `DDQN` (van Hasselt et al., 2016), `C51` (Bellemare et al.,
2017), `QRDQN` and `IQN` (Dabney et al., 2018), `Rainbow` (Hessel et al., 2018) and
`R2D2` (Kapturowski et al., 2019). The equations are in `tfrl.agents`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tfrl import losses, networks, utils
from tfrl.algorithms import mixins, off_policy, parts
from tfrl.algorithms.settings import (
    ABOVE_0,
    FRACTION,
    FROM_0,
    SIZE,
    SIZE_OR_0,
    check_layers,
    field,
    number,
    one_of,
)


class ValueBased(
    mixins.Epsilons,
    mixins.Targets,
    mixins.GradientNorm,
    mixins.FinalRate,
    mixins.OneRate,
    mixins.Layers,
    off_policy.OffPolicy,
):
    """The base of the algorithms of this module."""

    actions = "discrete"
    takes_masks = True

    num_iterations: int = 12_250
    collect_steps_per_iteration: int = 4
    train_steps_per_iteration: int = 4
    replay_capacity: int = 50_000
    gamma: float = 0.995
    n_step_update: int = 3
    target_update_tau: float = 0.02
    eval_interval: int = 500
    log_interval: int = 125
    checkpoint_interval: int = 2_500
    fc_layer_params: Sequence[int] = (100, 100)
    learning_rate: float = 2e-3
    final_learning_rate: float | None = 1e-5

    adam_epsilon: float = field(
        "Epsilon in the denominator of Adam's step.", ABOVE_0, default=1e-7
    )
    dueling: bool = field("Separate layers for values and advantages.", default=False)
    noisy_stddev: float = field(
        "Initial noise of the last layers; 0.5 is usual, 0: none.", FROM_0, default=0.0
    )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "optimizer": parts.adam(
                self.scheduled(self.learning_rate),
                epsilon=self.adam_epsilon,
                global_clipnorm=self.max_gradient_norm or None,
            ),
        }

    def make_network(self, kind: Any, **arguments: Any) -> networks.Network:
        """Makes a network without memory.

        A dueling network has the last hidden layer twice, for values and for
        advantages.
        """
        units = self.fc_layer_params
        network: networks.Network = kind(
            self.observation_spec,
            self.environment.action_spec(),
            fc_layer_params=units[:-1] if self.dueling else units,
            dueling_layer_params=units[-1:] if self.dueling else None,
            noisy_stddev=self.noisy_stddev or None,
            seed=self.seed,
            **arguments,
            **parts.network_arguments(self),
        )
        return network


class QLearning(ValueBased):
    """The base of the algorithms that learn the mean of the return."""

    loss: str = field(
        "Loss of the TD errors: squared or huber.",
        one_of("squared", "huber"),
        default="squared",
    )

    def make_networks(self) -> dict[str, Any]:
        """Makes the Q-network; see `Algorithm.make_networks`."""
        return {"q_network": self.make_network(networks.QNetwork)}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        losses: dict[str, Any] = {
            "squared": utils.common.element_wise_squared_loss,
            "huber": utils.common.element_wise_huber_loss,
        }
        return {**super().agent_arguments(), "td_errors_loss_fn": losses[self.loss]}


class DQN(mixins.Munchausen, QLearning):
    """DQN: Q-learning with replay and a target network (Mnih et al., 2015).

    Each part of Rainbow except the distribution is a setting; `DDQN` has double
    Q-learning.
    """

    name = "dqn"
    title = "DQN"
    agent_name = "DqnAgent"


class DDQN(QLearning):
    """Double DQN: the online network chooses the next action (van Hasselt, 2016)."""

    name = "ddqn"
    relative = "dqn"
    title = "DDQN"
    agent_name = "DdqnAgent"


class DistributionalValues(ValueBased):
    """The base of the algorithms that learn distributions of the return."""

    double_q: bool = field("The online network chooses the next action.", default=True)

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {**super().agent_arguments(), "double_q": self.double_q}


class Categorical(mixins.Atoms, DistributionalValues):
    """The base of the algorithms whose distributions are on fixed atoms."""

    agent_name = "CategoricalDqnAgent"

    min_probability: float = field(
        "Smallest probability of an atom in the loss.",
        number(low=0.0, high=0.5, excludes_high=True),
        default=0.0,
    )
    initial_weights: str = field(
        "Initial weights: usual, or fan_in as in PyTorch.",
        one_of("usual", "fan_in"),
        default="usual",
    )

    def make_networks(self) -> dict[str, Any]:
        """Makes the network of distributions; see `Algorithm.make_networks`."""
        network = self.make_network(
            networks.CategoricalQNetwork, num_atoms=self.num_atoms
        )
        if self.initial_weights == "fan_in":
            network.create_variables()
            networks.layers.initializers.draw_by_fan_in(network, self.seed)
        return {"categorical_q_network": network}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "min_q_value": self.vmin,
            "max_q_value": self.vmax,
            "min_probability": self.min_probability,
        }


class C51(Categorical):
    """C51: a distribution of the return on fixed atoms (Bellemare et al., 2017).

    By default the settings are CleanRL's for CartPole-v1, but with other initial
    weights, and with probabilities that are not clipped.
    """

    name = "c51"
    title = "C51"

    num_iterations: int = 49_000
    initial_collect_steps: int = 10_000
    collect_steps_per_iteration: int = 10
    train_steps_per_iteration: int = 1
    replay_capacity: int = 10_000
    fc_layer_params: Sequence[int] = (120, 84)
    batch_size: int = 128
    learning_rate: float = 2.5e-4
    final_learning_rate: float | None = None
    adam_epsilon: float = 0.01 / 128
    gamma: float = 0.99
    n_step_update: int = 1
    double_q: bool = False
    num_atoms: int = 101
    vmin: float = -100.0
    vmax: float = 100.0
    target_update_tau: float = 1.0
    target_update_period: int = 50
    epsilon_decay_iterations: int = 25_000
    eval_interval: int = 2_450
    log_interval: int = 490
    checkpoint_interval: int = 9_800


class Rainbow(Categorical):
    """Rainbow: C51 with all parts that improve DQN (Hessel et al., 2018)."""

    name = "rainbow"
    title = "Rainbow"

    num_iterations: int = 24_750
    train_steps_per_iteration: int = 2
    replay: str = "prioritized"
    priority_exponent: float = 0.5
    learning_rate: float = 1e-3
    dueling: bool = True
    noisy_stddev: float = 0.5
    initial_epsilon: float = 0.0
    final_epsilon: float = 0.0


class QRDQN(mixins.Munchausen, mixins.Quantiles, DistributionalValues):
    """QR-DQN: quantiles of the return (Dabney et al., 2018).

    By default the settings are rl-zoo3's for CartPole-v1.
    """

    name = "qr_dqn"
    title = "QR-DQN"
    agent_name = "QrDqnAgent"

    num_iterations: int = 192
    collect_steps_per_iteration: int = 256
    train_steps_per_iteration: int = 128
    replay_capacity: int = 100_000
    fc_layer_params: Sequence[int] = (256, 256)
    learning_rate: float = 2.3e-3
    final_learning_rate: float | None = None
    adam_epsilon: float = 0.01 / 64
    gamma: float = 0.99
    n_step_update: int = 1
    double_q: bool = False
    num_quantiles: int = 10
    target_update_tau: float = 1.0
    target_update_period: int = 128
    epsilon_decay_iterations: int = 31
    final_epsilon: float = 0.04
    eval_interval: int = 8
    log_interval: int = 2
    checkpoint_interval: int = 48

    def make_networks(self) -> dict[str, Any]:
        """Makes the network of quantiles; see `Algorithm.make_networks`."""
        network = self.make_network(
            networks.QuantileQNetwork, num_quantiles=self.num_quantiles
        )
        return {"q_network": network}


class IQN(mixins.Munchausen, mixins.Quantiles, DistributionalValues):
    """IQN: quantiles at sampled fractions (Dabney et al., 2018, arXiv:1806.06923)."""

    name = "iqn"
    title = "IQN"
    agent_name = "IqnAgent"

    num_iterations: int = 24_750
    train_steps_per_iteration: int = 2
    learning_rate: float = 1e-3
    num_quantiles: int = 8

    num_acting_quantiles: int = field(
        "Quantiles that an action is chosen by; 0: num_quantiles.", SIZE_OR_0, default=0
    )
    quantile_layer_params: Sequence[int] = field(
        "Units of the hidden layers after the fractions' embedding.",
        check_layers,
        default=(),
    )

    def make_networks(self) -> dict[str, Any]:
        """Makes the network of quantiles; see `Algorithm.make_networks`."""
        network = self.make_network(
            networks.ImplicitQuantileNetwork,
            num_quantiles=self.num_acting_quantiles or self.num_quantiles,
            quantile_layer_params=self.quantile_layer_params,
        )
        return {"q_network": network}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "num_quantiles": self.num_quantiles,
            "num_target_quantiles": self.num_quantiles,
        }


class R2D2(QLearning):
    """R2D2: double DQN with memory, on sequences (Kapturowski et al., 2019).

    By default the settings are for CartPole-v1 without velocities.
    """

    name = "r2d2"
    title = "R2D2"
    agent_name = "R2d2Agent"
    environment_name = "CartPoleNoVel-v1"

    num_iterations: int = 49_750
    train_steps_per_iteration: int = 1
    replay: str = "prioritized"
    replay_capacity: int = 100_000
    priority_exponent: float = 0.9
    importance_exponent: float = 0.6
    final_importance_exponent: float = 0.6
    fc_layer_params: Sequence[int] = (64,)
    learning_rate: float = 1e-3
    batch_size: int = 32
    n_step_update: int = 5
    epsilon_decay_iterations: int = 5_000
    eval_interval: int = 2_000
    log_interval: int = 500
    checkpoint_interval: int = 10_000

    lstm_size: int = field(
        "Units of the LSTM, after the hidden layers.", SIZE, default=64
    )
    burn_in_length: int = field(
        "Steps that bring the LSTM's state up to date.", SIZE_OR_0, default=10
    )
    trace_length: int = field(
        "Steps after the burn-in to learn from.", SIZE, default=20
    )
    priority_eta: float = field(
        "Weight of the largest error in a sequence's priority.",
        FRACTION,
        default=0.9,
        needs=("replay", "prioritized"),
    )

    def make_networks(self) -> dict[str, Any]:
        """Makes the Q-network, with an LSTM after the hidden layers."""
        network = networks.QRnnNetwork(
            self.observation_spec,
            self.environment.action_spec(),
            input_fc_layer_params=self.fc_layer_params,
            lstm_size=(self.lstm_size,),
            output_fc_layer_params=None,
            dueling_layer_params=self.fc_layer_params[-1:] if self.dueling else None,
            noisy_stddev=self.noisy_stddev or None,
            seed=self.seed,
            **parts.network_arguments(self),
        )
        return {"q_network": network}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "burn_in_length": self.burn_in_length,
        }

    def trained_sequence_length(self) -> int | None:
        """Returns the frames of a sampled sequence, with the burn-in."""
        return self.burn_in_length + self.trace_length + 1

    def priority_fn(self) -> Callable[[Any], Any]:
        """Returns the function that turns a sequence's TD errors into a priority."""
        return functools.partial(losses.sequence_priorities, eta=self.priority_eta)
