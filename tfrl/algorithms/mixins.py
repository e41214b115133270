"""Settings that several algorithms share: classes that an algorithm adds to its bases.

A mixin declares a setting once, and says what it means to the parts: to the agent, by
`agent_arguments`, or to the networks and the loop. A class that needs another default
writes `gamma: float = 0.98`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfrl import agents, networks, policies, utils
from tfrl.algorithms import algorithm, parts, spaces
from tfrl.algorithms.settings import (
    BATCHES,
    CHECK_ACTIVATION,
    COUNT,
    DISCOUNTS,
    ENTROPIES,
    ENVIRONMENTS,
    EPSILONS,
    FINITE,
    FRACTION,
    FROM_0,
    LAMBDAS,
    SIZE,
    SIZE_OR_0,
    TARGET_STEPS,
    check_convolutions,
    check_layers,
    field,
    final,
    integer,
    live,
    one_of,
    rate,
    remedy_for,
)

# Networks.


class Activation(algorithm.Algorithm):
    """The activation of hidden layers."""

    activation: str = field(
        "Activation of hidden layers, such as tanh; usual: each network's own.",
        CHECK_ACTIVATION,
        default="relu",
    )


class Networks(Activation):
    """Networks of any observations; see `parts.network_arguments`."""

    dtype: str = field(
        "Dtype of networks; mixed_bfloat16 for large ones on GPUs.",
        one_of("float32", "mixed_bfloat16", "mixed_float16"),
        default="float32",
    )
    conv_layer_params: Sequence[Sequence[int]] = field(
        "Convolutions for images; () chooses by their size.",
        check_convolutions,
        default=(),
    )


class Layers(algorithm.Algorithm):
    """Hidden layers, of one size for all networks."""

    fc_layer_params: Sequence[int] = field(
        "Units of the hidden layers of each network.", check_layers, default=(64, 64)
    )


class Encoder(algorithm.Algorithm):
    """SimBa's residual blocks in place of hidden layers."""

    encoder: str = field(
        "Hidden layers: mlp, or simba's residual blocks of one size.",
        one_of("mlp", "simba"),
        default="mlp",
    )

    def check_together(self) -> None:
        """Checks that residual blocks have one size."""
        super().check_together()
        if self.encoder != "simba":
            return
        for name, sizes in self.settings.items():
            if name.endswith("fc_layer_params") and len(set(sizes)) != 1:
                raise ValueError(
                    f"{name}: expected the same number of units for each residual "
                    "block, such as (128,) or (512, 512), with encoder='simba', got "
                    f"{sizes}; {remedy_for(name)}."
                )


class Normalized(algorithm.Algorithm):
    """An agent that may normalize its observations."""

    normalize_observations: bool = field(
        "Normalize observations by their mean and variance.", default=False
    )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        make = utils.tensor_normalizer.StreamingTensorNormalizer
        normalizer = (
            make(self.observation_spec) if self.normalize_observations else None
        )
        return {**super().agent_arguments(), "observation_normalizer": normalizer}


class StateDependentNoise(algorithm.Algorithm):
    """Noise of continuous actions that depends on the state (gSDE)."""

    gsde_sample_freq: int = field(
        "Steps with one matrix of state-dependent noise; 0: off.", SIZE_OR_0, default=0
    )

    @property
    def action_kind(self) -> spaces.Kind:
        """The kind of its actions; with state-dependent noise they form one vector."""
        return "vector" if self.gsde_sample_freq else self.actions

    def with_noise(self, policy: policies.TFPolicy) -> policies.TFPolicy:
        """Returns the policy that collects, with the noise if there is some."""
        if not self.gsde_sample_freq:
            return policy
        return policies.StateDependentNoisePolicy(
            policy, self.gsde_sample_freq, seed=self.seed
        )


# Rates and norms of updates.


class OneRate(algorithm.Algorithm):
    """One learning rate for all networks."""

    learning_rate: float = rate(default=1e-3)


class FinalRate(algorithm.Algorithm):
    """Learning rates that may fall until the end of the run."""

    final_learning_rate: float | None = final("learning rate", default=0.0)

    def check_together(self) -> None:
        """Checks that no rate is a schedule of its own and has a last value, too."""
        super().check_together()
        last = self.final_learning_rate
        for name, value in self.settings.items():
            if name.endswith("learning_rate") and callable(value) and last is not None:
                raise ValueError(
                    f"final_learning_rate: expected None with {name}, a schedule of "
                    f"its own, {type(value).__name__}, got {last}; "
                    f"{remedy_for('final_learning_rate=None')}."
                )

    def scheduled(self, rate: Any) -> Any:
        """Returns a learning rate, or its schedule if it changes."""
        return parts.schedule(rate, self.num_updates, self.final_learning_rate)


class ActorCriticRates(algorithm.Algorithm):
    """A learning rate of the actor and one of the critics."""

    actor_learning_rate: float = rate(default=1e-3)
    critic_learning_rate: float = rate(default=1e-3)

    def scheduled(self, rate: Any) -> Any:
        """Returns a learning rate, or its schedule if it changes."""
        return rate

    def adam_arguments(self) -> dict[str, float]:
        """Returns arguments of the actor's and the critics' Adam."""
        return {}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        own, scheduled = self.adam_arguments(), self.scheduled
        return {
            **super().agent_arguments(),
            "actor_optimizer": parts.adam(scheduled(self.actor_learning_rate), **own),
            "critic_optimizer": parts.adam(scheduled(self.critic_learning_rate), **own),
        }


class WeightDecay(ActorCriticRates):
    """AdamW in place of Adam, for the networks."""

    weight_decay: float = field(
        "Weight decay of the networks' AdamW; 0: Adam.", FROM_0, default=0.0
    )

    def adam_arguments(self) -> dict[str, float]:
        """Returns arguments of the actor's and the critics' Adam."""
        return {**super().adam_arguments(), "weight_decay": self.weight_decay}


class GradientNorm(algorithm.Algorithm):
    """A bound on gradients."""

    max_gradient_norm: float = field(
        "Largest norm of all gradients together; 0: unlimited.", FROM_0, default=0.0
    )


class Updates(algorithm.Algorithm):
    """Several updates in an iteration, each with a batch."""

    train_steps_per_iteration: int = field(
        "Updates in each iteration.", SIZE, default=1
    )
    batch_size: int = field(
        "Frames, or sequences of frames, in each update.",
        SIZE,
        search=BATCHES,
        default=64,
    )

    @property
    def updates_per_iteration(self) -> int:
        """The updates of an iteration."""
        return self.train_steps_per_iteration


class ActorPeriod(algorithm.Algorithm):
    """An actor that is updated less often than its critics."""

    actor_update_period: int = field(
        "Critic updates for each update of the actor and of a temperature.",
        COUNT,
        default=1,
    )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "actor_update_period": self.actor_update_period,
        }


# Collection.


class Environments(algorithm.Algorithm):
    """Several environments."""

    num_envs: int = field(
        "Environments stepped together, in one process.", ENVIRONMENTS, default=1
    )


class Steps(Environments):
    """A fixed number of steps in each iteration; of a bandit, a step is a round."""

    collect_steps_per_iteration: int = field(
        "Steps of each environment in an iteration.", SIZE, default=1
    )

    @property
    def steps_per_iteration(self) -> int:
        """The environment steps of an iteration."""
        return self.collect_steps_per_iteration * self.num_envs


class Epsilon(algorithm.Algorithm):
    """Some actions are random."""

    final_epsilon: float = live(
        "Probability of a random action; the last one if it falls.",
        FRACTION,
        EPSILONS,
        default=0.05,
    )


class Epsilons(Epsilon):
    """Fewer and fewer actions are random; the others have the largest value."""

    num_action_bins: int = field(
        "Evenly spaced values of a continuous action to choose from.",
        SIZE_OR_0,
        default=0,
    )
    initial_epsilon: float = live(
        "First probability of a random action.", FRACTION, default=1.0
    )
    epsilon_decay_iterations: int = field(
        "Iterations from the first to the last epsilon.", COUNT, default=2_000
    )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        num_updates = self.epsilon_decay_iterations * self.updates_per_iteration
        epsilon = parts.schedule(self.initial_epsilon, num_updates, self.final_epsilon)
        return {**super().agent_arguments(), "epsilon_greedy": epsilon}


# Values and their targets.


class Discount(algorithm.Algorithm):
    """A discount of rewards."""

    gamma: float = live("Discount per step.", FRACTION, DISCOUNTS, default=0.99)


class Lambda(algorithm.Algorithm):
    """Returns between one step and all."""

    lambda_value: float = live(
        "Lambda: 1 uses full returns, 0 one-step targets.",
        FRACTION,
        LAMBDAS,
        default=0.95,
    )


class TargetStep(algorithm.Algorithm):
    """Target networks."""

    target_update_tau: float = live(
        "Step size of target networks towards the networks; 1 copies.",
        FRACTION,
        TARGET_STEPS,
        default=0.005,
    )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "target_update_tau": self.target_update_tau,
        }


class Targets(TargetStep):
    """Target networks with a period of their own."""

    target_update_period: int = field(
        "Updates between steps of the target networks.", COUNT, default=1
    )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "target_update_period": self.target_update_period,
        }


class Munchausen(algorithm.Algorithm):
    """Munchausen's reward for probable actions (Vieillard et al., 2020)."""

    munchausen: bool = field(
        "Munchausen targets; not with n steps or double_q.", default=False
    )

    def check_together(self) -> None:
        """Checks that the other options can be combined with this reward."""
        super().check_together()
        every = {"double_q": False, "n_step_update": 1}
        wanted = {k: x for k, x in every.items() if k in self.setting_fields()}
        given = {name: getattr(self, name) for name in wanted}
        if self.munchausen and given != wanted:
            raise ValueError(
                f"munchausen: expected {wanted} with it, got {given}; "
                f"{remedy_for('munchausen')}, or set these."
            )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        own = {"munchausen": agents.dqn.Munchausen()} if self.munchausen else {}
        return {**super().agent_arguments(), **own}


class Quantiles(algorithm.Algorithm):
    """Networks that predict quantiles of the return."""

    num_quantiles: int = field(
        "Quantiles of the return that a network predicts.", SIZE, default=32
    )


class Atoms(algorithm.Algorithm):
    """Networks that predict the return's distribution on fixed atoms."""

    num_atoms: int = field(
        "Atoms of the distribution, from vmin to vmax.",
        integer(2, 2**31 - 1),
        default=51,
    )
    vmin: float = field("Return of the lowest atom.", FINITE, default=0.0)
    vmax: float = field("Return of the highest atom.", FINITE, default=200.0)

    def check_together(self) -> None:
        """Checks the range of the atoms."""
        super().check_together()
        parts.check_returns(self.vmin, self.vmax)


class DistributionalCritic(Atoms, Layers, Networks):
    """A critic of distributions, for a deterministic actor and for MPO."""

    # The least reward of Pendulum-v1, -16.27, divided by 1 - gamma of 0.98.
    vmin: float = -814.0
    vmax: float = 0.0

    def make_critic(self) -> networks.Network:
        """Makes the critic, which predicts the distribution of the return."""
        encoder = spaces.observation_network(
            self.environment.observation_spec(),
            conv_layer_params=self.conv_layer_params or None,
            encoder=self.own_encoder,
            dtype=self.dtype,
            seed=self.seed + 1,
        )
        return networks.Sequential(
            [
                networks.CriticMultiplexer(observation_network=encoder),
                parts.normed_layers(self),
                networks.DiscreteValuedHead(self.vmin, self.vmax, self.num_atoms),
            ],
            seed=self.seed + 1,
        )


class Entropy(algorithm.Algorithm):
    """A reward for entropy."""

    entropy_regularization: float = live(
        "Weight of the policy's entropy in the loss.", FROM_0, ENTROPIES, default=0.0
    )
