"""Algorithms that learn from rollouts: their settings and loops."""

from __future__ import annotations

from typing import Any, ClassVar

from tfrl import agents, train
from tfrl.algorithms import algorithm, parts
from tfrl.algorithms.settings import (
    DISCOUNTS,
    ENTROPIES,
    ENVIRONMENTS,
    FRACTION,
    FROM_0,
    LAMBDAS,
    SIZE,
    SIZE_OR_0,
    Settings,
    check_layers,
    field,
    live,
    number,
    rate,
    uniform,
)


class RolloutSettings(Settings):
    """The settings of an algorithm that learns from rollouts."""

    num_envs: int = field(8, "Environments stepped together.", ENVIRONMENTS)
    collect_steps_per_iteration: int = field(
        128, "Steps of each environment in an iteration.", SIZE
    )
    num_epochs: int = field(
        1, "Epochs of training on each rollout.", SIZE, search=(1, 5, 10, 20)
    )
    minibatch_size: int = field(
        0, "Frames in each update; 0 uses the whole rollout.", SIZE_OR_0
    )
    fc_layer_params: tuple[int, ...] = field(
        (64, 64), "Units of the hidden layers of each network.", check_layers
    )
    normalize_observations: bool = field(
        False, "Normalize observations by their running statistics."
    )
    learning_rate: float = rate(1e-3)
    anneal_learning_rate: bool = field(
        True, "Whether the learning rate falls linearly to 0."
    )
    gamma: float = live(0.99, "Discount per step.", FRACTION, DISCOUNTS)
    gradient_clipping: float | None = field(
        0.5,
        "Largest norm of all gradients together.",
        number(low=0.0, excludes_low=True, optional=True),
        search=uniform(0.3, 2.0),
    )

    def fitted(self, num_envs: int) -> dict[str, Any]:
        """Returns changes that keep the number of frames in a rollout."""
        frames = self.collect_steps_per_iteration * self.num_envs
        steps = max(frames // num_envs, 1)
        return {"num_envs": num_envs, "collect_steps_per_iteration": steps}


class ActorCriticSettings(RolloutSettings):
    """The settings of PPO and A2C."""

    defaults: ClassVar = {"activation": "tanh"}

    share_layers: bool = field(
        False, "Actor and critic share the layers before an LSTM or their outputs."
    )
    lstm_size: int = field(
        0, "Units of an LSTM after the hidden layers; 0: no LSTM.", SIZE_OR_0
    )
    output_fc_layer_params: tuple[int, ...] = field(
        (), "Units of the hidden layers after the LSTM.", check_layers
    )
    lstm_sequence_length: int = field(
        0, "Frames in a sequence for the LSTM; 0 uses whole rollouts.", SIZE_OR_0
    )
    initial_log_stddev: float = live(
        0.0, "First log standard deviation of continuous actions.", number()
    )
    gsde_sample_freq: int = field(
        0, "Steps with one matrix of state-dependent noise; 0: off.", SIZE_OR_0
    )
    normalize_rewards: bool = field(
        False, "Divide rewards by the running deviation of returns."
    )
    gae_lambda: float = live(
        0.95, "Lambda: 1 uses full returns, 0 one-step targets.", FRACTION, LAMBDAS
    )
    entropy_regularization: float = live(
        0.0, "Weight of the policy's entropy in the loss.", FROM_0, ENTROPIES
    )
    value_loss_weight: float = live(
        0.5, "Weight of the squared error of the values.", FROM_0
    )
    normalize_advantages: bool = field(
        True, "Normalize the advantages in each minibatch."
    )


class OnPolicy(algorithm.Algorithm):
    """An algorithm that learns from rollouts."""

    def make_loop(self, agent: agents.TFAgent) -> train.OnPolicyLoop:
        """Makes the loop; see `Algorithm.make_loop`.

        Raises:
          ValueError: There is a replay buffer.
        """
        s = self.settings
        self.refuse_replay()
        return train.OnPolicyLoop(
            self.environment,
            agent,
            collect_steps_per_iteration=s.collect_steps_per_iteration,
            num_epochs=s.num_epochs,
            minibatch_size=s.minibatch_size or None,
            sequence_length=getattr(s, "lstm_sequence_length", 0) or None,
            target_kl=getattr(s, "target_kl", 0.0) or None,
            seed=s.seed,
            jit_compile="auto" if s.jit_compile else False,
        )


def updates_per_rollout(s: Any) -> int:
    """Returns the number of updates in an iteration that collects a rollout."""
    minibatches = 1
    if s.minibatch_size:
        num_frames = s.collect_steps_per_iteration * s.num_envs
        # The loop refuses minibatches that are larger than a rollout.
        minibatches = max(num_frames // s.minibatch_size, 1)
    return int(s.num_epochs * minibatches)


def annealed(value: float, s: Any, num_iterations: int, *, is_annealed: bool) -> Any:
    """Returns a number, or its schedule if it falls linearly to 0 over the run."""
    if not is_annealed:
        return value
    return parts.decay(value, num_iterations * updates_per_rollout(s), 0.0)
