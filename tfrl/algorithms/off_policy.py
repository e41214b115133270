"""Algorithms that learn from a replay buffer: their settings, buffers and loops."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tfrl import agents, losses, networks, replay_buffers, train
from tfrl.algorithms import mixins, parts
from tfrl.algorithms.settings import (
    FINITE,
    FROM_0,
    SIZE,
    SIZE_OR_0,
    field,
    one_of,
    remedy_for,
)
from tfrl.system import log

_MUCH_MEMORY = 10**9  # Bytes.


# The setting without which exponents of priorities do nothing.
_PRIORITIZED = ("replay", "prioritized")


class Replayed(mixins.Steps, mixins.Updates, mixins.Discount):
    """An algorithm that learns from a replay buffer."""

    initial_collect_steps: int = field(
        "Random steps before the first iteration.", SIZE, default=1_000
    )
    replay_capacity: int = field(
        "Size of the buffer, in frames.", SIZE, default=200_000
    )
    overlap: bool = field(
        "The environment, in Python, steps while the updates run.", default=False
    )

    def check_together(self) -> None:
        """Checks that the buffer has room for a sample."""
        super().check_together()
        each, of = self.sampled_frames()
        least = each * self.num_envs
        if self.replay_capacity < least:
            raise ValueError(
                f"replay_capacity: expected at least {least:,}, {each:,} frames of "
                f"each environment (num_envs, {of}), got "
                f"{self.replay_capacity}; {remedy_for('replay_capacity')}."
            )

    def sampled_frames(self) -> tuple[int, str]:
        """Returns the number of frames in a sample, and the setting that decides it."""
        return self.trained_sequence_length() or 2, "the length of sequences"

    def make_loop(self, agent: agents.TFAgent) -> train.OffPolicyLoop:
        """Makes the loop, with its buffer; see `Algorithm.make_loop`."""
        with train.device_scope(self.device):
            buffer = self.own_buffer(agent)
            if buffer is None:
                buffer = self.make_replay_buffer(agent)
        return train.OffPolicyLoop(
            self.environment,
            agent,
            buffer,
            collect_steps_per_iteration=self.collect_steps_per_iteration,
            train_steps_per_iteration=self.train_steps_per_iteration,
            initial_collect_steps=self.initial_collect_steps,
            sample_batch_size=self.batch_size,
            sequence_length=self.trained_sequence_length(),
            seed=self.seed,
            jit_compile="auto" if self.jit_compile else False,
            priority_fn=self.priority_fn(),
            overlap=self.overlap,
        )

    def make_replay_buffer(self, agent: agents.TFAgent) -> Any:
        """Makes the buffer, which samples uniformly."""
        return replay_buffers.TFUniformReplayBuffer(**self.buffer_arguments(agent))

    def buffer_arguments(self, agent: agents.TFAgent) -> dict[str, Any]:
        """Returns the arguments of a buffer, and prints what a large one takes."""
        batch_size = self.environment.batch_size
        arguments: dict[str, Any] = {
            "data_spec": agent.collect_data_spec,
            "batch_size": batch_size,
            "max_length": self.replay_capacity // batch_size,
            "seed": self.seed,
            "row_format": self.row_format(),
        }
        _say_if_large(**arguments)
        return arguments

    @property
    def initial_steps(self) -> int:
        """The environment steps before the first iteration."""
        return self.initial_collect_steps

    def row_format(self) -> replay_buffers.RowFormat | None:
        """Returns the form of stored frames; None for unchanged ones."""
        return None

    def trained_sequence_length(self) -> int | None:
        """Returns the frames of a sampled sequence; None for the agent's own number."""
        return None

    def priority_fn(self) -> Callable[[Any], Any] | None:
        """Returns the function that turns TD errors into priorities, or None."""
        return None


class OffPolicy(mixins.Networks, Replayed, mixins.Normalized):
    """An algorithm that learns values from replay."""

    replay: str = field(
        "How frames are drawn: uniform or prioritized.",
        one_of("uniform", "prioritized"),
        default="uniform",
    )
    frame_stack: int = field(
        "Frames stacked by the environment, to store once; 0: off.",
        SIZE_OR_0,
        default=0,
    )
    priority_exponent: float = field(
        "Exponent of the priorities; 0 samples uniformly.",
        FROM_0,
        default=0.6,
        needs=_PRIORITIZED,
    )
    importance_exponent: float = field(
        "First importance exponent; changes linearly over the run.",
        FROM_0,
        default=0.4,
        needs=_PRIORITIZED,
    )
    final_importance_exponent: float = field(
        "Last importance exponent.", FROM_0, default=1.0, needs=_PRIORITIZED
    )
    goals_per_step: int = field(
        "Goals in hindsight for each step; 0: none.", SIZE_OR_0, default=0
    )
    n_step_update: int = field("Steps in an n-step return.", SIZE, default=1)

    def check_together(self) -> None:
        """Checks how the buffer stores frames."""
        super().check_together()
        if self.frame_stack and self.goals_per_step:
            raise ValueError(
                "frame_stack: expected 0 with goals_per_step, since replay stores "
                f"frames once or relabels goals, got {self.frame_stack}; set one of "
                "them to 0."
            )

    def sampled_frames(self) -> tuple[int, str]:
        """Returns the number of frames in a sample, and the setting that decides it."""
        if self.trained_sequence_length():
            return super().sampled_frames()
        return self.n_step_update + 1, "n_step_update"

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "gamma": self.gamma,
            "n_step_update": self.n_step_update,
        }

    def make_replay_buffer(self, agent: agents.TFAgent) -> Any:
        """Makes the buffer, which samples uniformly or by the TD errors."""
        if self.replay == "uniform":
            return super().make_replay_buffer(agent)
        return replay_buffers.TFPrioritizedReplayBuffer(
            **self.buffer_arguments(agent),
            priority_exponent=self.priority_exponent,
            importance_exponent=parts.schedule(
                self.importance_exponent,
                self.num_updates,
                self.final_importance_exponent,
            ),
            step=agent.train_step_counter,
        )

    def row_format(self) -> replay_buffers.RowFormat | None:
        """Returns the form in which the buffer stores frames; None for unchanged ones.

        With `frame_stack`, it stores each frame of a stacked observation once; with
        `goals_per_step`, it relabels goals.
        """
        if self.frame_stack:
            return replay_buffers.FrameStacking(self.frame_stack)
        goals = self.goals_per_step
        return replay_buffers.Hindsight.of(self.environment, goals) if goals else None

    def priority_fn(self) -> Callable[[Any], Any]:
        """Returns the function that turns TD errors into priorities."""
        return functools.partial(losses.sequence_priorities, eta=1.0)


class Memory(OffPolicy):
    """An algorithm whose actor and critics may have LSTMs.

    Updates then take sequences of frames; the LSTMs begin each with zeros. As in Ni et
    al. (2022, arXiv:2110.05038), the hidden layers follow an LSTM, which takes the
    observations through a layer of its own size.
    """

    # Settings that its networks with an LSTM do not have, with their only values.
    without_lstm: ClassVar[dict[str, Any]] = {
        "encoder": "mlp",
        "n_step_update": 1,
        "value_bins": 0,
    }

    lstm_size: int = field(
        "Units of an LSTM before the hidden layers; 0: no LSTM.",
        SIZE_OR_0,
        default=0,
    )
    lstm_sequence_length: int = field(
        "Steps in a sequence to learn from.",
        SIZE,
        default=20,
        needs=("lstm_size", True),
    )

    def check_together(self) -> None:
        """Checks that other settings fit an LSTM, if there is one."""
        super().check_together()
        for name, value in self.without_lstm.items():
            given = getattr(self, name)
            if self.lstm_size and given != value:
                raise ValueError(
                    f"{name}: expected {value!r} with an LSTM (lstm_size), got "
                    f"{given!r}; {remedy_for(name)}."
                )

    def trained_sequence_length(self) -> int | None:
        """Returns the frames of a sampled sequence; None for the agent's own number."""
        return self.lstm_sequence_length + 1 if self.lstm_size else None

    def make_lstm_critic(self, fc_layer_params: Sequence[int]) -> networks.Network:
        """Makes a critic with an LSTM, which the agent copies.

        Args:
          fc_layer_params: The units of the hidden layers, for the LSTM's output and the
            action.
        """
        return networks.MemoryCriticNetwork(
            (self.critic_spec, self.environment.action_spec()),
            observation_fc_layer_params=(self.lstm_size,),
            lstm_size=(self.lstm_size,),
            joint_fc_layer_params=fc_layer_params,
            seed=self.seed + 1,
            **parts.network_arguments(self, self.critic_spec, for_critic=True),
        )

    def lstm_arguments(self, fc_layer_params: Sequence[int]) -> dict[str, Any]:
        """Returns the arguments of an actor with an LSTM before the hidden layers.

        Args:
          fc_layer_params: The units of the hidden layers.
        """
        return {
            "input_fc_layer_params": (self.lstm_size,),
            "lstm_size": (self.lstm_size,),
            "output_fc_layer_params": fc_layer_params,
            "seed": self.seed,
            **parts.network_arguments(self, self.actor_spec),
        }


class Bins(OffPolicy):
    """An algorithm whose critics may predict their values by bins (HL-Gauss)."""

    value_bins: int = field(
        "Bins of the critics' values, for HL-Gauss; 0: plain numbers.",
        SIZE_OR_0,
        default=0,
    )
    # Those of Pendulum-v1, whose least reward is -16.27, with a discount of 0.99.
    vmin: float = field(
        "The smallest return.", FINITE, default=-1_700.0, needs=("value_bins", True)
    )
    vmax: float = field(
        "The largest return.", FINITE, default=100.0, needs=("value_bins", True)
    )

    def check_together(self) -> None:
        """Checks that there are several bins in a range, if there are bins."""
        super().check_together()
        if self.value_bins == 1:
            raise ValueError(
                "value_bins: expected 0 or at least 2 bins, got 1; "
                f"{remedy_for('value_bins')}."
            )
        if self.value_bins:
            parts.check_returns(self.vmin, self.vmax)

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        found = super().agent_arguments()
        if not self.value_bins:
            return found
        bins = losses.HlGauss(self.vmin, self.vmax, self.value_bins)
        return {**found, "td_errors_loss_fn": bins}


def _say_if_large(
    data_spec: Any,
    batch_size: int,
    max_length: int,
    row_format: replay_buffers.RowFormat | None,
    **_: Any,
) -> None:
    """Prints the memory that a large buffer needs before it is allocated."""
    import tensorflow as tf  # Not at the top: --help does not wait for it.

    stored = (row_format or replay_buffers.RowFormat()).stored_spec(data_spec)
    frame = sum(
        math.prod(spec.shape) * spec.dtype.size for spec in tf.nest.flatten(stored)
    )
    size = frame * batch_size * max_length
    if size > _MUCH_MEMORY:
        log.info(
            f"Replay takes {size / 1e9:.1f} GB of memory for "
            f"{batch_size * max_length:,} frames; replay_capacity sets their number."
        )
