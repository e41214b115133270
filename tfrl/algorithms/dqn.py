"""DQN and the algorithms based on it, which learn the values of discrete actions.

`DQN` (Mnih et al., 2015), `DDQN` (van Hasselt et al., 2016), `C51` (Bellemare et al.,
2017), `QRDQN` and `IQN` (Dabney et al., 2018), `Rainbow` (Hessel et al., 2018) and
`R2D2` (Kapturowski et al., 2019). The equations are in `tfrl.agents`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tfrl import agents, networks, utils
from tfrl.algorithms import off_policy, parts
from tfrl.algorithms.settings import (
    ABOVE_0,
    BATCHES,
    COUNT,
    EPSILONS,
    FINITE,
    FRACTION,
    FROM_0,
    SIZE,
    SIZE_OR_0,
    check_layers,
    field,
    integer,
    live,
    number,
    one_of,
    rate,
)


class ValueBasedSettings(off_policy.OffPolicySettings):
    """The settings that all algorithms of this module share."""

    defaults: ClassVar = {
        "num_iterations": 12_250,
        "collect_steps_per_iteration": 4,
        "train_steps_per_iteration": 4,
        "replay_capacity": 50_000,
        "gamma": 0.995,
        "n_step_update": 3,
        "target_update_tau": 0.02,
        "eval_interval": 500,
        "log_interval": 125,
        "checkpoint_interval": 2_500,
    }
    proportional: ClassVar = {"final_learning_rate": "learning_rate"}

    num_action_bins: int = field(
        0, "Evenly spaced values of a continuous action to choose from.", SIZE_OR_0
    )
    fc_layer_params: tuple[int, ...] = field(
        (100, 100), "Units of the hidden layers.", check_layers
    )
    learning_rate: float = rate(2e-3, "First learning rate of Adam; falls linearly.")
    final_learning_rate: float = live(
        1e-5, "Last learning rate; scales with the first one.", FROM_0
    )
    adam_epsilon: float = field(
        1e-7, "Epsilon in the denominator of Adam's step.", ABOVE_0
    )
    max_gradient_norm: float = field(
        0.0, "Largest norm of all gradients together; 0: unlimited.", FROM_0
    )
    target_update_period: int = field(
        1, "Updates between steps of the target networks.", COUNT
    )
    double_q: bool = field(True, "The online network chooses the next action.")
    dueling: bool = field(False, "Separate layers for values and advantages.")
    noisy_stddev: float = field(
        0.0, "Initial noise of the last layers; 0.5 is usual, 0: none.", FROM_0
    )
    initial_epsilon: float = live(
        1.0, "First probability of a random action.", FRACTION
    )
    final_epsilon: float = live(
        0.05, "Last probability of a random action.", FRACTION, EPSILONS
    )
    epsilon_decay_iterations: int = field(
        2_000, "Iterations from the first to the last epsilon.", COUNT
    )


class MunchausenSettings(ValueBasedSettings):
    """The settings of algorithms that can use Munchausen's reward."""

    munchausen: bool = field(
        False, "Munchausen targets; not with double_q or n-step returns."
    )

    @classmethod
    def check_together(cls, values: Any, remedy_for: Callable[[str], str]) -> None:
        """Checks that the options can be combined with Munchausen's reward."""
        super().check_together(values, remedy_for)
        wanted = {"double_q": False, "n_step_update": 1}
        given = {name: values[name] for name in wanted}
        if values["munchausen"] and given != wanted:
            raise ValueError(
                f"munchausen: expected {wanted} with it, got {given}; "
                f"{remedy_for('munchausen')}, or set these."
            )


class DQNSettings(MunchausenSettings):
    """The settings of DQN and DDQN."""

    loss: str = field(
        "squared",
        "Loss of the TD errors: squared or huber.",
        one_of("squared", "huber"),
    )


class AtomSettings(ValueBasedSettings):
    """The settings of algorithms that predict distributions on fixed atoms."""

    num_atoms: int = field(51, "Atoms of the distribution.", integer(2, 2**31 - 1))
    min_q_value: float = field(0.0, "Return of the lowest atom.", FINITE)
    max_q_value: float = field(200.0, "Return of the highest atom.", FINITE)
    min_probability: float = field(
        0.0,
        "Smallest probability of an atom in the loss.",
        number(low=0.0, high=0.5, excludes_high=True),
    )
    initial_weights: str = field(
        "usual",
        "Initial weights: usual, or fan_in as in PyTorch.",
        one_of("usual", "fan_in"),
    )

    @classmethod
    def check_together(cls, values: Any, remedy_for: Callable[[str], str]) -> None:
        """Checks the atoms."""
        super().check_together(values, remedy_for)
        if not values["min_q_value"] < values["max_q_value"]:
            raise ValueError(
                "max_q_value: expected more than min_q_value, "
                f"{values['min_q_value']}, got {values['max_q_value']}; "
                f"{remedy_for('max_q_value')}."
            )


class C51Settings(AtomSettings):
    """The settings of C51.

    By default they are CleanRL's for CartPole-v1, but with other initial weights, and
    with probabilities that are not clipped.
    """

    defaults: ClassVar = {
        "num_iterations": 49_000,
        "initial_collect_steps": 10_000,
        "collect_steps_per_iteration": 10,
        "train_steps_per_iteration": 1,
        "replay_capacity": 10_000,
        "fc_layer_params": (120, 84),
        "batch_size": 128,
        "learning_rate": 2.5e-4,
        "final_learning_rate": 2.5e-4,
        "adam_epsilon": 0.01 / 128,
        "gamma": 0.99,
        "n_step_update": 1,
        "double_q": False,
        "num_atoms": 101,
        "min_q_value": -100.0,
        "max_q_value": 100.0,
        "target_update_tau": 1.0,
        "target_update_period": 50,
        "epsilon_decay_iterations": 25_000,
        "eval_interval": 2_450,
        "log_interval": 490,
        "checkpoint_interval": 9_800,
    }


class RainbowSettings(AtomSettings):
    """The settings of Rainbow."""

    defaults: ClassVar = {
        "num_iterations": 24_750,
        "train_steps_per_iteration": 2,
        "replay": "prioritized",
        "priority_exponent": 0.5,
        "learning_rate": 1e-3,
        "dueling": True,
        "noisy_stddev": 0.5,
        "initial_epsilon": 0.0,
        "final_epsilon": 0.0,
    }


class QuantileSettings(MunchausenSettings):
    """The settings of algorithms that learn quantiles of the return."""

    num_quantiles: int = field(32, "Quantiles of the return.", SIZE)


class QRDQNSettings(QuantileSettings):
    """The settings of QR-DQN, by default rl-zoo3's for CartPole-v1."""

    defaults: ClassVar = {
        "num_iterations": 192,
        "collect_steps_per_iteration": 256,
        "train_steps_per_iteration": 128,
        "replay_capacity": 100_000,
        "fc_layer_params": (256, 256),
        "learning_rate": 2.3e-3,
        "final_learning_rate": 2.3e-3,
        "adam_epsilon": 0.01 / 64,
        "gamma": 0.99,
        "n_step_update": 1,
        "double_q": False,
        "num_quantiles": 10,
        "target_update_tau": 1.0,
        "target_update_period": 128,
        "epsilon_decay_iterations": 31,
        "final_epsilon": 0.04,
        "eval_interval": 8,
        "log_interval": 2,
        "checkpoint_interval": 48,
    }


class IQNSettings(QuantileSettings):
    """The settings of IQN."""

    defaults: ClassVar = {
        "num_iterations": 24_750,
        "train_steps_per_iteration": 2,
        "learning_rate": 1e-3,
        "num_quantiles": 8,
    }

    num_acting_quantiles: int = field(
        0, "Quantiles that an action is chosen by; 0: num_quantiles.", SIZE_OR_0
    )
    quantile_layer_params: tuple[int, ...] = field(
        (), "Units of the hidden layers after the fractions' embedding.", check_layers
    )


class R2D2Settings(DQNSettings):
    """The settings of R2D2, by default for CartPole-v1 without velocities."""

    defaults: ClassVar = {
        "num_iterations": 49_750,
        "train_steps_per_iteration": 1,
        "replay": "prioritized",
        "replay_capacity": 100_000,
        "priority_exponent": 0.9,
        "importance_exponent": 0.6,
        "final_importance_exponent": 0.6,
        "fc_layer_params": (64,),
        "learning_rate": 1e-3,
        "n_step_update": 5,
        "epsilon_decay_iterations": 5_000,
        "eval_interval": 2_000,
        "log_interval": 500,
        "checkpoint_interval": 10_000,
    }

    batch_size: int = field(32, "Sequences in each update.", SIZE, search=BATCHES)
    lstm_size: int = field(64, "Units of the LSTM, after the hidden layers.", SIZE)
    burn_in_length: int = field(
        10, "Steps that bring the LSTM's state up to date.", SIZE_OR_0
    )
    trace_length: int = field(20, "Steps after the burn-in to learn from.", SIZE)
    priority_eta: float = field(
        0.9, "Weight of the largest error in a sequence's priority.", FRACTION
    )

    @classmethod
    def check_together(cls, values: Any, remedy_for: Callable[[str], str]) -> None:
        """Checks that double Q-learning is on."""
        super().check_together(values, remedy_for)
        if not values["double_q"]:
            raise ValueError(
                "double_q: expected True for R2D2, got False; "
                f"{remedy_for('double_q')}."
            )


class ValueBased(off_policy.OffPolicy):
    """The base of the algorithms of this module."""

    actions = "discrete"

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`.

        If the learning rate ends where it begins, the optimizer gets it as a number.
        """
        s = self.settings
        updates = s.train_steps_per_iteration
        arguments = {
            "optimizer": parts.adam(
                parts.rate(
                    s.learning_rate,
                    self.num_iterations * updates,
                    s.final_learning_rate,
                ),
                epsilon=s.adam_epsilon,
                global_clipnorm=s.max_gradient_norm or None,
            ),
            "epsilon_greedy": parts.decay(
                s.initial_epsilon, s.epsilon_decay_iterations * updates, s.final_epsilon
            ),
            "n_step_update": s.n_step_update,
            "target_update_tau": s.target_update_tau,
            "target_update_period": s.target_update_period,
            "gamma": s.gamma,
            "seed": s.seed,
            "observation_normalizer": parts.observation_normalizer(
                s, self.observation_spec
            ),
            **self.own_arguments(),
        }
        if getattr(s, "munchausen", False):
            arguments["munchausen"] = agents.dqn.Munchausen()
        return arguments

    def own_arguments(self) -> dict[str, Any]:
        """Returns the arguments that only this algorithm's agent has."""
        return {"double_q": self.settings.double_q}


class DQN(ValueBased):
    """DQN: Q-learning with replay and a target network (Mnih et al., 2015).

    Each part of Rainbow except the distribution is a setting.
    """

    Settings = DQNSettings
    name = "dqn"
    title = "DQN"
    overrides: ClassVar = {"double_q": False}

    def agent_class(self) -> Callable[..., agents.DqnAgent]:
        """Returns the agent's class, by the choice of the next action."""
        return agents.DdqnAgent if self.settings.double_q else agents.DqnAgent

    def make_networks(self) -> dict[str, Any]:
        """Makes the Q-network; see `Algorithm.make_networks`."""
        s = self.settings
        return {"q_network": _make_network(networks.QNetwork, s, self)}

    def own_arguments(self) -> dict[str, Any]:
        """Returns the arguments that only this algorithm's agent has."""
        return {"td_errors_loss_fn": _loss_fn(self.settings)}


class DDQN(DQN):
    """Double DQN: the online network chooses the next action (van Hasselt, 2016)."""

    name = "ddqn"
    relative = "dqn"
    title = "DDQN"
    overrides: ClassVar = {"double_q": True}


class C51(ValueBased):
    """C51: a distribution of the return on fixed atoms (Bellemare et al., 2017)."""

    Settings: ClassVar[Any] = C51Settings
    name = "c51"
    title = "C51"
    agent_name = "CategoricalDqnAgent"

    def make_networks(self) -> dict[str, Any]:
        """Makes the network of distributions; see `Algorithm.make_networks`."""
        s = self.settings
        network = _make_network(
            networks.CategoricalQNetwork, s, self, num_atoms=s.num_atoms
        )
        if s.initial_weights == "fan_in":
            network.create_variables()
            networks.layers.initializers.draw_by_fan_in(network, s.seed)
        return {"categorical_q_network": network}

    def own_arguments(self) -> dict[str, Any]:
        """Returns the arguments that only this algorithm's agent has."""
        s = self.settings
        return {
            **super().own_arguments(),
            "min_q_value": s.min_q_value,
            "max_q_value": s.max_q_value,
            "min_probability": s.min_probability,
        }


class Rainbow(C51):
    """Rainbow: C51 with all parts that improve DQN (Hessel et al., 2018)."""

    Settings = RainbowSettings
    name = "rainbow"
    title = "Rainbow"


class QRDQN(ValueBased):
    """QR-DQN: quantiles of the return (Dabney et al., 2018)."""

    Settings = QRDQNSettings
    name = "qr_dqn"
    title = "QR-DQN"
    agent_name = "QrDqnAgent"

    def make_networks(self) -> dict[str, Any]:
        """Makes the network of quantiles; see `Algorithm.make_networks`."""
        s = self.settings
        network = _make_network(
            networks.QuantileQNetwork,
            s,
            self,
            num_quantiles=s.num_quantiles,
        )
        return {"q_network": network}


class IQN(ValueBased):
    """IQN: quantiles at sampled fractions (Dabney et al., 2018, arXiv:1806.06923)."""

    Settings = IQNSettings
    name = "iqn"
    title = "IQN"
    agent_name = "IqnAgent"

    def make_networks(self) -> dict[str, Any]:
        """Makes the network of quantiles; see `Algorithm.make_networks`."""
        s = self.settings
        network = _make_network(
            networks.ImplicitQuantileNetwork,
            s,
            self,
            num_quantiles=s.num_acting_quantiles or s.num_quantiles,
            quantile_layer_params=s.quantile_layer_params,
        )
        return {"q_network": network}

    def own_arguments(self) -> dict[str, Any]:
        """Returns the arguments that only this algorithm's agent has."""
        s = self.settings
        return {
            **super().own_arguments(),
            "num_quantiles": s.num_quantiles,
            "num_target_quantiles": s.num_quantiles,
        }


class R2D2(ValueBased):
    """R2D2: double DQN with memory, on sequences (Kapturowski et al., 2019)."""

    Settings = R2D2Settings
    name = "r2d2"
    title = "R2D2"
    agent_name = "R2d2Agent"
    environment_name = "CartPoleNoVel-v1"

    def make_networks(self) -> dict[str, Any]:
        """Makes the Q-network, with an LSTM after the hidden layers."""
        s = self.settings
        network = networks.QRnnNetwork(
            self.observation_spec,
            self.environment.action_spec(),
            input_fc_layer_params=s.fc_layer_params,
            lstm_size=(s.lstm_size,),
            output_fc_layer_params=None,
            dueling_layer_params=s.fc_layer_params[-1:] if s.dueling else None,
            noisy_stddev=s.noisy_stddev or None,
            seed=s.seed,
            **parts.network_arguments(s, self.observation_spec),
        )
        return {"q_network": network}

    def own_arguments(self) -> dict[str, Any]:
        """Returns the arguments that only this algorithm's agent has."""
        s = self.settings
        return {"td_errors_loss_fn": _loss_fn(s), "burn_in_length": s.burn_in_length}


def _loss_fn(s: Any) -> Callable[..., Any]:
    losses: dict[str, Any] = {
        "squared": utils.common.element_wise_squared_loss,
        "huber": utils.common.element_wise_huber_loss,
    }
    loss_fn: Callable[..., Any] = losses[s.loss]
    return loss_fn


def _make_network(
    kind: Any, s: Any, algorithm: ValueBased, **arguments: Any
) -> networks.Network:
    """Makes a network without memory.

    A dueling network has the last hidden layer twice, for values and for advantages.
    """
    units = s.fc_layer_params
    network: networks.Network = kind(
        algorithm.observation_spec,
        algorithm.environment.action_spec(),
        fc_layer_params=units[:-1] if s.dueling else units,
        dueling_layer_params=units[-1:] if s.dueling else None,
        noisy_stddev=s.noisy_stddev or None,
        seed=s.seed,
        **arguments,
        **parts.network_arguments(s, algorithm.observation_spec),
    )
    return network
