"""Trains many runs together, which differ in seeds, learning rates or other numbers.

The runs are copies of one loop. Their variables are stacked along a leading axis, and
one program, compiled by XLA, does every iteration for all runs together. The matrix
products of small networks leave most of a processor idle when they run alone; here they
become one batched product for all runs.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from tfrl.environments.boundary import running_steps
from tfrl.system import directory_lock, interrupts, log
from tfrl.train.runs.run_length import next_multiple
from tfrl.train.sweeps import members as members_lib
from tfrl.train.sweeps import sweep_checkpoint, sweep_result


def sweep(
    make_loop: members_lib.MakeLoop,
    seeds: Iterable[int],
    hyperparameters: Mapping[str, Sequence[float]] | None = None,
    *,
    num_iterations: int,
    eval_interval: int,
    num_eval_episodes: int = 10,
    num_threads: int | None = None,
    callback: Callable[[int, np.ndarray], None] | None = None,
    directory: str | os.PathLike | None = None,
    checkpoint_interval: int = 10_000,
) -> sweep_result.SweepResult:
    """Trains one run for each seed, all in one compiled program.

    ```python
    def make_loop(seed, learning_rate):
        environment = native.load("CartPole-v1", seed=seed)
        ...
        return train.OffPolicyLoop(environment, agent, replay_buffer, seed=seed)

    result = train.sweep(
        make_loop, range(32), {"learning_rate": [1e-3] * 16 + [3e-3] * 16},
        num_iterations=20_000, eval_interval=1_000,
    )
    result.plot("curves.png", group_by="learning_rate")
    ```

    Each run draws the same random numbers as if it were trained alone.

    Args:
      make_loop: `make_loop(seed, **hyperparameters)` returns a loop whose
        `supports_sweep` is True, such as an `OffPolicyLoop` or an `OnPolicyLoop`, on a
        native environment. It is called once for each run. Numbers that differ between
        runs must be stored in variables, as weights and learning rates are. For another
        number of an agent, such as `gamma`, give the agent `tf.Variable(gamma)`.
      seeds: A seed for each run.
      hyperparameters: For each name, a number for each run.
      num_iterations: The number of iterations of each run.
      eval_interval: The number of iterations between evaluations of the greedy
        policies.
      num_eval_episodes: The number of episodes in each evaluation of a run.
      num_threads: The number of threads that share the runs. None means one thread for
        each processor, or a single thread if the agents are not on the CPU.
      callback: A function that is called after each evaluation with the number of
        iterations so far and the returns `[N]`.
      directory: A directory for checkpoints. A sweep that was interrupted or killed
        continues from its last checkpoint if it is called again with the same
        arguments, and ends with the same numbers as without the pause. Ctrl-C, SIGTERM
        and SIGHUP then end the sweep after the current evaluation, with a checkpoint.
        Only one process may use the directory at a time, and the sweep locks it. None
        saves nothing.
      checkpoint_interval: The number of iterations between checkpoints; each is saved
        after an evaluation. The last is saved at the end.

    Raises:
      ValueError: There are no seeds, or a number is below 1. Or a hyperparameter does
        not have one value for each seed, or no variable holds its values. Or the
        variables of the loops have different shapes, or a loop uses a variable that
        none of its parts holds, or samples from a dataset. Or the environment has no
        time limit. Or the checkpoint in `directory` belongs to other arguments.
      CheckpointError: The checkpoint in `directory` is damaged.
      DirectoryLockedError: Another process uses `directory`.
      KeyboardInterrupt: Ctrl-C was pressed.
      Terminated: With `directory`, SIGTERM or SIGHUP came.
      TypeError: `make_loop` returns a loop that does not support sweeps, a loop on an
        environment that is not native, or a loop with a `host_observer`.
    """
    seeds = tuple(int(seed) for seed in seeds)
    swept = {
        name: tuple(map(float, values))
        for name, values in (hyperparameters or {}).items()
    }
    _check_arguments(seeds, swept)
    for name, number in (
        ("num_iterations", num_iterations),
        ("eval_interval", eval_interval),
        ("num_eval_episodes", num_eval_episodes),
        ("num_threads", 1 if num_threads is None else num_threads),
        ("checkpoint_interval", checkpoint_interval),
    ):
        if number < 1:
            raise ValueError(f"{name}: got {number}, expected at least 1.")
    checkpoint = directory and sweep_checkpoint.SweepCheckpoint(
        directory,
        {
            "seeds": seeds,
            "hyperparameters": swept,
            "eval_interval": eval_interval,
            "num_eval_episodes": num_eval_episodes,
        },
    )
    with directory_lock.locked(directory) if directory else contextlib.nullcontext():
        saved = checkpoint.restore() if checkpoint else None
        progress, state = saved or (sweep_checkpoint.SweepMeasurements(), None)
        runs = members_lib.Members(
            make_loop, seeds, swept, num_eval_episodes, num_threads
        )
        _train(
            runs,
            state,
            progress,
            checkpoint or None,
            num_iterations,
            eval_interval,
            checkpoint_interval,
            callback,
        )
    losses, steps, returns = progress.columns()
    return sweep_result.SweepResult(
        seeds,
        swept,
        np.array(progress.iterations, np.int64),
        steps,
        returns,
        losses,
        np.array(progress.seconds),
        runs.loop,
        runs.variables,
        runs.final_values(),
    )


def _train(
    runs: members_lib.Members,
    state: Sequence[np.ndarray] | None,
    progress: sweep_checkpoint.SweepMeasurements,
    checkpoint: sweep_checkpoint.SweepCheckpoint | None,
    num_iterations: int,
    eval_interval: int,
    checkpoint_interval: int,
    callback: Callable[[int, np.ndarray], None] | None,
) -> None:
    """Starts the runs, trains to the end, or to an interruption, and adds results."""
    last_saved = progress.done
    # A sweep without checkpoints would lose everything, so signals end it at once.
    deferred = interrupts.deferred(
        lambda: runs.running_step() or "the iterations until the next evaluation",
        interrupts.SIGNALS,
    )
    with running_steps.naming_slow(log.info):
        _start(runs, state)
        with deferred if checkpoint else contextlib.nullcontext(_never) as is_requested:
            while progress.done < num_iterations and not is_requested():
                before = progress.done
                stop = min(next_multiple(before, eval_interval), num_iterations)
                started = time.monotonic()
                progress.rows.append(runs.advance(stop - before))
                progress.seconds.append(time.monotonic() - started)
                progress.iterations.append(stop)
                if checkpoint and stop >= next_multiple(before, checkpoint_interval):
                    checkpoint.save(progress, runs.state())
                    last_saved = stop
                if callback is not None:
                    callback(stop, progress.rows[-1][-1])
            if checkpoint and progress.done > last_saved:
                checkpoint.save(progress, runs.state())


def _start(runs: members_lib.Members, state: Sequence[np.ndarray] | None) -> None:
    """Starts the runs; Ctrl-C ends it at once, since there is nothing to save."""
    try:
        runs.start(state)
    except KeyboardInterrupt:
        log.info(
            "Interrupted. The process ends as soon as XLA has compiled what it has "
            "begun; a second Ctrl-C does not wait for it."
        )
        raise


def _never() -> bool:
    return False


def _check_arguments(
    seeds: Sequence[int],
    hyperparameters: Mapping[str, Sequence[float]],
) -> None:
    if not seeds:
        raise ValueError("seeds: got none, expected one for each run.")
    for name, values in hyperparameters.items():
        if len(values) != len(seeds):
            raise ValueError(
                f"hyperparameters[{name!r}]: got {len(values)} values, expected "
                f"{len(seeds)}, one for each seed."
            )
