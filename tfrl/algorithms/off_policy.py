"""Algorithms that learn from a replay buffer: their settings, buffers and loops."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from tfrl import agents, environments, losses, replay_buffers, train
from tfrl.algorithms import algorithm, parts
from tfrl.algorithms.settings import (
    BATCHES,
    DISCOUNTS,
    ENVIRONMENTS,
    FRACTION,
    FROM_0,
    SIZE,
    SIZE_OR_0,
    TARGET_STEPS,
    Settings,
    field,
    live,
)
from tfrl.system import log

_MUCH_MEMORY = 10**9  # Bytes.


class OffPolicySettings(Settings):
    """The settings of an algorithm that learns from replay."""

    num_envs: int = field(1, "Environments stepped together.", ENVIRONMENTS)
    initial_collect_steps: int = field(
        1_000, "Random steps before the first iteration.", SIZE
    )
    collect_steps_per_iteration: int = field(
        1, "Steps of each environment in an iteration.", SIZE
    )
    train_steps_per_iteration: int = field(1, "Updates in each iteration.", SIZE)
    replay: str = field("uniform", "How frames are drawn: uniform or prioritized.")
    replay_capacity: int = field(200_000, "Size of the buffer, in frames.", SIZE)
    frame_stack: int = field(
        0, "Frames stacked by the environment, to store once; 0: off.", SIZE_OR_0
    )
    priority_exponent: float = field(
        0.6, "Exponent of the priorities; 0 samples uniformly.", FROM_0
    )
    importance_exponent: float = field(
        0.4, "First importance exponent; changes linearly over the run.", FROM_0
    )
    final_importance_exponent: float = field(1.0, "Last importance exponent.", FROM_0)
    goals_per_step: int = field(
        0, "Goals in hindsight for each step; 0: none.", SIZE_OR_0
    )
    normalize_observations: bool = field(
        False, "Normalize observations by their running statistics."
    )
    batch_size: int = field(64, "Frames in each update.", SIZE, search=BATCHES)
    gamma: float = live(0.99, "Discount per step.", FRACTION, DISCOUNTS)
    n_step_update: int = field(1, "Steps in an n-step return.", SIZE)
    target_update_tau: float = live(
        0.005,
        "Step size of target networks towards the networks; 1 copies.",
        FRACTION,
        TARGET_STEPS,
    )

    @classmethod
    def check_together(cls, values: Any, remedy_for: Callable[[str], str]) -> None:
        """Checks that the buffer has room for a sample, and how it stores frames."""
        each = values["n_step_update"] + 1
        least = each * values["num_envs"]
        if values["replay_capacity"] < least:
            raise ValueError(
                f"replay_capacity: expected at least {least:,}, {each:,} frames of "
                f"each environment (num_envs, n_step_update), got "
                f"{values['replay_capacity']}; {remedy_for('replay_capacity')}."
            )
        given = [name for name in ("frame_stack", "goals_per_step") if values[name]]
        if given and values["replay"] == "service":
            raise ValueError(
                f"{given[0]}: expected 0 with replay in a server, which stores whole "
                f"observations and relabels no goals, got {values[given[0]]}; set "
                f"--config.{given[0]}=0, or run train_dqn."
            )
        if len(given) == 2:
            raise ValueError(
                "frame_stack: expected 0 with goals_per_step, since replay stores "
                "frames once or relabels goals, got "
                f"{values['frame_stack']}; set one of them to 0."
            )


class OffPolicy(algorithm.Algorithm):
    """An algorithm that learns from replay."""

    def make_loop(self, agent: agents.TFAgent) -> train.OffPolicyLoop:
        """Makes the loop, with its buffer; see `Algorithm.make_loop`."""
        s = self.settings
        with train.device_scope(s.device):
            buffer = self.own_buffer(agent)
            if buffer is None:
                buffer = make_replay_buffer(
                    s, self.environment, agent, self.num_iterations
                )
        return train.OffPolicyLoop(
            self.environment,
            agent,
            buffer,
            collect_steps_per_iteration=s.collect_steps_per_iteration,
            train_steps_per_iteration=s.train_steps_per_iteration,
            initial_collect_steps=s.initial_collect_steps,
            sample_batch_size=s.batch_size,
            sequence_length=sequence_length(s),
            seed=s.seed,
            jit_compile="auto" if s.jit_compile else False,
            priority_fn=priority_fn(s),
        )


def make_replay_buffer(
    s: Any,
    environment: environments.TFEnvironment,
    agent: agents.TFAgent,
    num_iterations: int,
) -> replay_buffers.TFUniformReplayBuffer | replay_buffers.TFPrioritizedReplayBuffer:
    """Makes the buffer, which samples uniformly or by the TD errors.

    Raises:
      ValueError: The settings name another kind of replay.
    """
    arguments: dict[str, Any] = {
        "data_spec": agent.collect_data_spec,
        "batch_size": environment.batch_size,
        "max_length": s.replay_capacity // environment.batch_size,
        "seed": s.seed,
        "row_format": row_format(s, environment),
    }
    _say_if_large(**arguments)
    if s.replay == "uniform":
        return replay_buffers.TFUniformReplayBuffer(**arguments)
    if s.replay != "prioritized":
        raise ValueError(
            f"replay: got {s.replay!r}, expected 'uniform' or 'prioritized'; set "
            "--replay. For 'service', replay in a server, take the example "
            "train_dqn_service."
        )
    return replay_buffers.TFPrioritizedReplayBuffer(
        **arguments,
        priority_exponent=s.priority_exponent,
        importance_exponent=parts.decay(
            s.importance_exponent,
            num_iterations * s.train_steps_per_iteration,
            s.final_importance_exponent,
        ),
        step=agent.train_step_counter,
    )


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


def row_format(
    s: Any, environment: environments.TFEnvironment
) -> replay_buffers.RowFormat | None:
    """Returns the form in which the buffer stores frames; None for unchanged frames.

    With `frame_stack`, it stores each frame of a stacked observation once; with
    `goals_per_step`, it relabels goals.
    """
    if s.frame_stack:
        return replay_buffers.FrameStacking(s.frame_stack)
    goals = s.goals_per_step
    return replay_buffers.Hindsight.of(environment, goals) if goals else None


def sequence_length(s: Any) -> int | None:
    """Returns the number of frames in a sequence; None without a `trace_length`."""
    trace = getattr(s, "trace_length", 0)
    return s.burn_in_length + trace + 1 if trace else None


def priority_fn(s: Any) -> Callable[[Any], Any]:
    """Returns the function that turns TD errors into priorities."""
    return functools.partial(
        losses.sequence_priorities, eta=getattr(s, "priority_eta", 1.0)
    )
