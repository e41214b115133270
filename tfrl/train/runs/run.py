"""Runs a training loop to its end, with evaluation, logs, checkpoints and outputs."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from tfrl.environments import tf_environment
from tfrl.environments.boundary import running_steps
from tfrl.eval import evaluate as evaluate_lib
from tfrl.eval import supervision
from tfrl.loggers import base
from tfrl.savers import whole_checkpoints
from tfrl.system import interrupts
from tfrl.train.loops import training_loop
from tfrl.train.runs import callbacks as callbacks_lib
from tfrl.train.runs import (
    finished_runs,
    full_disk,
    late_evaluations,
    learning_curve,
    progress,
    run_directory,
    run_length,
    run_log,
    run_result,
    run_view,
    saved_policies,
    slow_steps,
    stopped_runs,
    video,
)
from tfrl.utils import number_checks, variables

if TYPE_CHECKING:
    from tfrl.typing import types

_LARGEST_BUFFER_TO_SAVE = 10**9  # Bytes.


class Run:
    """Runs a loop to completion and writes the outputs of a `RunDirectory`.

    A run that was interrupted or killed resumes from its last checkpoint when it is run
    again. On SIGINT (Ctrl-C), SIGTERM or SIGHUP (a terminal that closes) it stops after
    the current call, which takes about half a second, and saves a checkpoint; an
    evaluation by an `Evaluator` stops in the same way, and is done again after the run
    is resumed. A second SIGINT or SIGTERM stops it immediately. If a step of the
    environment does not return, that ends the process with status 130 (SIGINT) or 143
    (SIGTERM). A SIGHUP that the process ignores, as with nohup, stays ignored. A
    callback may stop the run, too; see `Callback`. It then stays stopped when it is run
    again, unless you give `continue_stopped` or another length.

    A finished run becomes longer if it is run again with a larger `num_iterations` or
    `num_environment_steps`. It continues from its last checkpoint. A schedule that the
    caller makes from the length, such as a learning rate that decays until the end,
    then has the values for the longer run, so its value may jump.

    Until `run` ends, the run holds the lock of its directory, so that no other process
    trains there.
    """

    def __init__(
        self,
        loop: training_loop.TrainingLoop,
        directory: run_directory.RunDirectory,
        *,
        num_iterations: int | None = None,
        num_environment_steps: int | None = None,
        evaluate: Callable[[int], evaluate_lib.EvaluationResult]
        | late_evaluations.LateEvaluations
        | None = None,
        eval_interval: int = 1000,
        log_interval: int = 1000,
        checkpoint_interval: int = 10000,
        checkpoint_replay_buffer: bool | None = None,
        max_to_keep: int | None = 3,
        video_environment: tf_environment.TFEnvironment
        | Callable[[], tf_environment.TFEnvironment | None]
        | None = None,
        title: str = "",
        loggers: Sequence[base.Logger] = (),
        metrics: Mapping[str, Callable[[], types.Float]] | None = None,
        view: run_view.RunView | None = None,
        callbacks: Sequence[callbacks_lib.Callback] = (),
        max_eval_steps: int | None = None,
        max_untrained_eval_steps: int = 1000,
        is_interrupted: Callable[[], bool] = lambda: False,
        shows_progress: bool = True,
        report: Callable[[pathlib.Path], Sequence[str]] | None = None,
        continue_stopped: bool = False,
        find_facts: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        """Creates the run and restores its last checkpoint, if there is one.

        Args:
          loop: The loop to run.
          directory: The directory of the outputs.
          num_iterations: The iteration at which training ends. The number of
            environment steps may be smaller than expected, because some steps of an
            iteration only reset the environment.
          num_environment_steps: The environment steps, summed over all environments, at
            which training ends, instead of `num_iterations`. The iteration that reaches
            them is the last.
          evaluate: A function that evaluates the agent's policy; it is called with the
            iteration. The policy with the best mean return is saved in `policy/`;
            without `evaluate`, the last policy is saved there. The last policy is
            always saved in `final_policy/`. With `LateEvaluations` training continues
            while a policy is evaluated, except at the end of the run; the next row has
            the result.
          eval_interval: Iterations between evaluations; the policy is also evaluated
            before the first iteration, unless `max_untrained_eval_steps` is 0, and
            after the last.
          log_interval: Iterations between rows of metrics.csv.
          checkpoint_interval: Iterations between checkpoints; one is also saved after
            every evaluation.
          checkpoint_replay_buffer: Whether checkpoints include the replay buffer; None
            includes it up to 1 GB. Without it, a resumed run collects initial
            experience again.
          max_to_keep: The number of newest checkpoints to keep; None keeps all.
          video_environment: An environment of batch size 1 for the video of the saved
            policy, or a function that makes it at the end, after which the run closes
            it. None records no video, nor does a function that returns None.
          title: The title of the learning curve.
          loggers: Further `tfrl.loggers.Logger`s, such as
            `[loggers.TerminalLogger()]`. Each receives the rows of metrics.csv, without
            values that were not measured, and the further numbers that TensorBoard
            shows. The run always writes metrics.csv and
            TensorBoard's files, too. It closes the loggers when it ends or fails.
          metrics: Further numbers for TensorBoard, the loggers and `on_log`: a function
            without arguments for each name, such as the `result` of a metric that is
            one of the loop's observers. NaN counts as not measured.
          view: Measures further columns of metrics.csv, and returns further text for
            the progress line, or None.
          callbacks: `Callback`s, which are called in this order.
          max_eval_steps: The largest number of steps of each environment in an
            evaluation by an `Evaluator`, for policies whose episodes do not end. If it
            is reached, there is a warning, and the episodes that have not ended count
            with their returns so far. None allows 100,000 steps for each episode of an
            environment.
          max_untrained_eval_steps: The same limit for the evaluation of the untrained
            policy, before the first iteration; 0 leaves this evaluation out.
          is_interrupted: Returns whether to stop as after a signal, for a run that no
            signal reaches, such as a run on a thread other than the main thread.
          shows_progress: Whether to show the progress; warnings, and a line that says
            how an interrupted run continues, are shown in any case.
          report: Called with the folder when training has ended; writes a report there,
            and returns the lines to show. None writes none.
          continue_stopped: Whether a run that a callback has stopped continues.
          find_facts: Returns facts about the environment, for the first row of
            diagnostics.jsonl; called once. None leaves them out.

        Raises:
          ValueError: An interval or number is not positive, or both lengths or neither
            are given, or the loop has no environment whose steps could be counted, or
            one of `metrics` has the name of a column.
          RunDirectoryError: Another process uses the directory, or it holds outputs
            whose checkpoints are lost.
          CheckpointError: There are checkpoints, but none can be used, or they belong
            to a loop with other variables.
          TypeError: One of `loggers` has no `write` and `close`, or one of `callbacks`
            is not a `Callback`, or one of `metrics` is not a function.
        """
        for name, value in (
            ("eval_interval", eval_interval),
            ("log_interval", log_interval),
            ("checkpoint_interval", checkpoint_interval),
            ("max_eval_steps", 1 if max_eval_steps is None else max_eval_steps),
            ("max_to_keep", 1 if max_to_keep is None else max_to_keep),
        ):
            number_checks.check_integer(name, value, 1, remedy="give a positive number")
        number_checks.check_integer(
            "max_untrained_eval_steps",
            max_untrained_eval_steps,
            0,
            remedy="0 leaves the evaluation of the untrained policy out",
        )
        self._length = run_length.RunLength(num_iterations, num_environment_steps)
        self._length.check(loop)
        self._callbacks = callbacks_lib.CallbackList(callbacks)
        self._log = run_log.RunLog(
            loop, directory, loggers, metrics or {}, view, find_facts
        )
        self._words = tuple if view is None else view.words
        self._loop = loop
        self._directory = directory
        self._late: late_evaluations.LateEvaluations | None = None
        self._arrived: evaluate_lib.EvaluationResult | None = None
        if evaluate is None or callable(evaluate):
            self._evaluate = evaluate
        else:
            self._late, self._evaluate = evaluate, evaluate.finish
        self._eval_interval = eval_interval
        self._log_interval = log_interval
        self._checkpoint_interval = checkpoint_interval
        self._max_eval_steps = max_eval_steps
        self._max_untrained_eval_steps = max_untrained_eval_steps
        self._is_interrupted = is_interrupted
        self._shows_progress = shows_progress
        self._continue_stopped = continue_stopped
        self._video_environment = video_environment
        self._title = title
        self._report = report
        self._best_return = tf.Variable(float("-inf"), trainable=False)
        self._last_return: float | None = None
        self._policies = saved_policies.SavedPolicies(loop.agent)
        if checkpoint_replay_buffer is None:
            buffer = loop.checkpoint_items().get("replay_buffer")
            size = 0 if buffer is None else _bytes_of(buffer)
            checkpoint_replay_buffer = size <= _LARGEST_BUFFER_TO_SAVE
        saved = loop.checkpoint_items(checkpoint_replay_buffer)
        self._not_saved = sorted(loop.checkpoint_items().keys() - saved.keys())
        with contextlib.ExitStack() as after_error:
            after_error.callback(directory.unlock)
            directory.lock()
            directory.check_checkpoints()
            self._checkpointer = whole_checkpoints.Checkpointer(
                directory.checkpoints,
                max_to_keep=max_to_keep,
                best_return=self._best_return,
                seconds=self._log.seconds,
                loss=self._log.loss,
                **saved,
            )
            after_error.pop_all()

    def run(self) -> run_result.RunResult:
        """Trains to the end, or until interrupted or stopped by a callback.

        Raises:
          Exception: The exception that the environment or a callback raised; the
            checkpoints are unchanged.
          CheckpointError: The weights are not finite; the checkpoints and the saved
            policies are unchanged.
          FullDiskError: There is no space left for the files of the run.
          RunDirectoryError: Another process uses the directory, or it or its metrics
            were removed during the run.
        """
        self._directory.lock()
        first = self._loop.iteration
        resumed_at = first if self._checkpointer.checkpoint_exists else None
        if resumed_at is not None:
            self._mend_policies()
        bar = progress.Progress(
            self._loop.info(),
            self._length,
            words=self._words,
            is_shown=self._shows_progress,
        )
        with contextlib.ExitStack() as stack:
            stack.enter_context(full_disk.explaining())
            stack.callback(self._directory.unlock)
            stack.callback(bar.close)
            stack.callback(self._log.close_loggers)
            if self._is_finished():
                bar.announce(finished_runs.text(first, self._directory.path))
                self._write_outputs(films=True)
                return self._result(resumed_at, bar)
            if self._continue_stopped:
                stopped_runs.unmark(self._directory.path, self._length)
            stop = stopped_runs.find(self._directory.path, self._length)
            # Checkpoints from the stop on may be lost.
            if stop is not None and first >= stop.iteration:
                bar.announce(stop.text(self._directory.path))
                return self._result(resumed_at, bar, stop.stopped_by)
            grown = self._directory.grow()
            if resumed_at is not None:
                self._note_resumption(bar, grown)
            self._callbacks.start(first)
            try:
                self._train(bar, resumed_at)
            except Exception as error:
                error.add_note(self._how_to_go_on())
                raise
            for line in (
                [] if self._report is None else self._report(self._directory.path)
            ):
                bar.announce(line)
            result = self._result(resumed_at, bar, self._callbacks.stopped_by)
            if result.stopped_by:
                self._mark_stopped(result.stopped_by)
            self._callbacks.call(on_end=result)
            return result

    def _mark_stopped(self, stopped_by: str) -> None:
        """Records that a callback has stopped the run, so that it stays stopped."""
        info = self._loop.info()
        stopped_runs.mark(
            self._directory.path,
            stopped_runs.Stop(
                self._length, info.iteration, info.environment_steps, stopped_by
            ),
        )

    def save(self) -> str:
        """Saves a checkpoint and the policy as they are now, without training.

        Returns the path of the checkpoint. The directory is then free for others.

        Raises:
          CheckpointError: The weights are not finite.
          FullDiskError: There is no space left.
          RunDirectoryError: Another process uses the directory.
        """
        self._directory.lock()
        with full_disk.explaining():
            path = self._checkpointer.save(self._loop.iteration)
            self._save_last_policy()
        self._directory.unlock()
        return path

    def _how_to_go_on(self) -> str:
        """Returns advice on continuing after an error, for its notes."""
        path = tf.train.latest_checkpoint(str(self._directory.checkpoints))
        after = (
            "no checkpoint was saved before; the same command begins the run again"
            if path is None
            else f"the same command resumes from {path}"
        )
        return f"It ended the run at iteration {self._loop.iteration:,}; {after}."

    def _note_resumption(
        self, bar: progress.Progress, grown: dict[str, tuple[int, int]]
    ) -> None:
        steps = self._loop.info().environment_steps
        bar.note(
            f"Resumed at iteration {self._loop.iteration:,}"
            + (f", environment step {steps:,}" if steps else "")
            + f", from {self._checkpointer.restored_path}."
        )
        for field, (before, now) in grown.items():
            bar.announce(
                f"{field} has {'grown' if now > before else 'fallen'} from {before:,} "
                f"to {now:,}. Schedules that depend on it, such as a learning rate "
                "that decays until the end, follow the run's new length from here on, "
                "so their values may jump; all other schedules continue unchanged."
            )

    def _train(self, bar: progress.Progress, resumed_at: int | None) -> None:
        """Trains and writes all outputs."""
        self._directory.forget_after(-1 if resumed_at is None else resumed_at)
        signals = interrupts.requested(interrupts.SIGNALS, running_steps.describe)
        slow = slow_steps.named(bar.announce)
        opened = self._log.opened(self._resumed_without(resumed_at))
        with opened, slow, signals as is_requested:

            def interrupted() -> bool:
                return is_requested() or self._is_interrupted()

            def goes_on() -> bool:
                return not (interrupted() or self._callbacks.stopped_by)

            if goes_on() and (resumed_at is None or self._evaluation_is_missing()):
                self._at_stop(bar, interrupted, self._loop.info())
            info = self._loop.info()
            while not self._length.is_reached(info) and goes_on():
                before = info.iteration
                bar.begin(self._loop.activity)
                started = time.monotonic()
                info = self._loop.run_call(self._next_stop(info) - before)
                elapsed = time.monotonic() - started
                bar.update(info, elapsed)
                self._log.called(info, info.iteration - before, elapsed)
                self._take_late(bar)
                # A call without iterations compiles the program, or collects initial
                # experience.
                if info.iteration > before:
                    self._callbacks.reached(info.iteration)
                    self._at_stop(bar, interrupted, info)
            if info.iteration == 0 and self._length.is_reached(info):
                self._end_untrained(bar, info)
            if not goes_on():
                self._end_early(bar)
        self._directory.check_intact(self._loop.iteration)
        if not all(path.exists() for path in self._expected_policies()):
            self._mend_policies()
        self._write_outputs(films=not interrupted())

    def _resumed_without(self, resumed_at: int | None) -> list[str] | None:
        """Returns what the checkpoint of a resumed run lacks; None for a new run.

        Where something is missing, the run differs from one that was not interrupted.
        """
        if resumed_at is None:
            return None
        has_stepped = self._loop.info().environment_steps > 0
        begins_episode = has_stepped and not self._loop.has_position()
        return self._not_saved + ["environment"] * begins_episode

    def _end_untrained(
        self, bar: progress.Progress, info: training_loop.IterationInfo
    ) -> None:
        """Saves a run that ended while it collected its initial experience."""
        bar.announce(
            f"The run ended before its first update: its {info.environment_steps:,} "
            "environment steps are initial experience, so nothing was learned. Train "
            "for more steps, or lower initial_collect_steps."
        )
        self._save_last_policy()
        self._checkpointer.save(info.iteration)

    def _end_early(self, bar: progress.Progress) -> None:
        """Saves a run that was interrupted or stopped, and prints how it continues."""
        if self._is_finished():
            return
        iteration, stopped_by = self._loop.iteration, self._callbacks.stopped_by
        self._directory.check_intact(iteration)
        path = self._checkpointer.save(iteration)
        if stopped_by:
            self._save_last_policy()
        self._callbacks.call(on_checkpoint=path)
        if stopped_by:
            bar.announce(
                f"Stopped at iteration {iteration:,} by {stopped_by}; saved {path}. "
                "The same command leaves it stopped; --continue, or "
                "continue_stopped=True in Python, continues from there."
            )
        else:
            bar.announce(
                f"Interrupted at iteration {iteration:,}; saved {path}. Run the same "
                "command again to resume from there."
            )

    def _next_stop(self, info: training_loop.IterationInfo) -> int:
        """Returns the next iteration at which something is due, or the run may end."""
        intervals = (
            self._eval_interval,
            self._log_interval,
            self._checkpoint_interval,
            *self._callbacks.intervals,
        )
        return self._length.next_stop(
            info, self._loop.most_steps_per_iteration, intervals
        )

    def _at_stop(
        self,
        bar: progress.Progress,
        interrupted: Callable[[], bool],
        info: training_loop.IterationInfo,
    ) -> None:
        """Evaluates, logs and saves, each if it is due, and then calls the callbacks.

        If the evaluation is interrupted, none of this is done; a resumed run does it.
        """
        iteration = info.iteration
        at_end = self._length.is_reached(info)
        self._directory.check_intact(iteration)
        evaluates = at_end or self._is_evaluation_due(iteration)
        if evaluates:
            # A policy whose weights are not finite is neither evaluated nor saved.
            self._checkpointer.check_finite()
        result = None
        if evaluates and self._late is not None and not at_end:
            self._late.begin(iteration)
        elif evaluates and self._evaluate is not None:
            started = time.monotonic()
            result = self._evaluated(bar, interrupted)
            self._log.spent("evaluating_seconds", time.monotonic() - started)
            if result is None:
                return
            self._last_return = result.mean
        row = None
        if evaluates or iteration % self._log_interval == 0:
            row = self._log.write(result or self._arrived)
            self._arrived = None
        if result is not None:
            # The untrained policy is evaluated but not saved.
            if iteration:
                self._save_if_best(result.mean)
            bar.evaluated(result.mean, float(self._best_return) if iteration else None)
        if at_end:
            self._save_last_policy()
        path = None
        if (evaluates or iteration % self._checkpoint_interval == 0) and iteration:
            path = self._checkpointer.save(iteration)
        self._callbacks.call(on_log=row, on_evaluation=result, on_checkpoint=path)

    def _take_late(self, bar: progress.Progress) -> None:
        """Takes the evaluations elsewhere that have ended."""
        for result, weights in () if self._late is None else self._late.take():
            is_trained, path = bool(result.iteration), None
            if is_trained:
                with weights:
                    is_best = self._save_if_best(result.mean)
                # A resumed run must know the return of the best policy.
                path = (
                    self._checkpointer.save(self._loop.iteration) if is_best else None
                )
            self._last_return, self._arrived = result.mean, result
            best = float(self._best_return) if is_trained else None
            bar.evaluated(result.mean, best)
            self._callbacks.call(on_evaluation=result, on_checkpoint=path)

    def _evaluated(
        self, bar: progress.Progress, interrupted: Callable[[], bool]
    ) -> evaluate_lib.EvaluationResult | None:
        """Evaluates the policy; returns None if a signal ends the evaluation."""
        assert self._evaluate is not None
        bar.begin("evaluating the policy")

        def between_calls(finished: int, num_episodes: int, num_steps: int) -> None:
            if interrupted():
                raise supervision.EvaluationInterruptedError
            bar.evaluating(finished, num_episodes, num_steps)

        field, limit = "max_eval_steps", self._max_eval_steps
        if self._loop.iteration == 0:
            untrained = self._max_untrained_eval_steps
            if limit is None or limit > untrained:
                field, limit = "max_untrained_eval_steps", untrained
        limits = supervision.Supervision(limit, field, between_calls)
        try:
            with supervision.supervised(limits):
                result = self._evaluate(self._loop.iteration)
        except supervision.EvaluationInterruptedError:
            return None
        info = self._loop.info()
        return dataclasses.replace(
            result, iteration=info.iteration, environment_steps=info.environment_steps
        )

    def _is_finished(self) -> bool:
        """Whether all iterations, and the last evaluation, are done."""
        at_end = self._length.is_reached(self._loop.info())
        return at_end and not self._evaluation_is_missing()

    def _evaluation_is_missing(self) -> bool:
        """Whether an evaluation is due at this iteration and metrics.csv lacks it."""
        info = self._loop.info()
        iteration = info.iteration
        # A late result is in another row.
        is_due = self._is_evaluation_due(iteration) and self._late is None
        is_due = is_due or self._length.is_reached(info)
        if self._evaluate is None or not is_due:
            return False
        return self._directory.evaluation_return(iteration) is None

    def _is_evaluation_due(self, iteration: int) -> bool:
        """Whether an evaluation is due at an iteration before the last."""
        if iteration == 0:
            return self._max_untrained_eval_steps > 0
        return iteration % self._eval_interval == 0

    def _expected_policies(self) -> list[pathlib.Path]:
        """Returns the paths of the policies that this run has saved until now."""
        finished = self._is_finished()
        has_best = float(self._best_return) > float("-inf")
        expected = [self._directory.final_policy] * finished
        if has_best or (finished and self._evaluate is None):
            expected.append(self._directory.policy)
        return expected

    def _save_if_best(self, mean: float) -> bool:
        """Saves the policy if it is the best one; returns whether it is."""
        is_best = mean >= float(self._best_return)
        if is_best:
            self._best_return.assign(np.float32(mean))
            self._policies.save(self._directory.policy)
        return is_best

    def _save_last_policy(self) -> None:
        """Saves the policy; it is also the best one if there is no better one."""
        self._policies.save(self._directory.final_policy)
        if float(self._best_return) == float("-inf"):
            self._policies.save(self._directory.policy)

    def _mend_policies(self) -> None:
        """Writes missing or damaged policies again."""
        best = float(self._best_return)
        now = self._policies.repair(
            self._expected_policies(), self._directory, self._loop.iteration, best
        )
        if now != best:
            self._best_return.assign(now)
            self._checkpointer.save(self._loop.iteration)

    def _write_outputs(self, films: bool) -> None:
        """Draws the learning curve, films the policy, and marks a finished run.

        Args:
          films: Whether there is time for a film, which takes minutes if a simulator
            draws its pictures without a GPU.
        """
        if self._directory.metrics_csv.exists():
            learning_curve.plot_learning_curve(
                self._directory.metrics_csv, self._directory.learning_curve, self._title
            )
        has_policy = self._directory.policy.exists()
        if films and has_policy:
            self._film()
        if self._is_finished() and (films or self._video_environment is None):
            self._directory.mark_finished(self._loop.iteration)

    def _film(self) -> None:
        """Films the saved policy, if there is an environment to film."""
        given = self._video_environment
        environment = given() if callable(given) else given
        if environment is None:
            return
        with contextlib.ExitStack() as stack:
            if callable(given):
                stack.callback(environment.close)
            video.record_video(
                environment,
                tf.saved_model.load(str(self._directory.policy)),
                self._directory.video,
            )

    def _result(
        self,
        resumed_at: int | None,
        bar: progress.Progress,
        stopped_by: str | None = None,
    ) -> run_result.RunResult:
        best, finished = float(self._best_return), self._is_finished()
        return run_result.RunResult(
            iteration=self._loop.iteration,
            finished=finished,
            resumed_at=resumed_at,
            best_return=None if best == float("-inf") else best,
            last_return=self._last_return,
            stopped_by=None if finished else stopped_by,
            **bar.speeds(),
        )


def _bytes_of(replay_buffer: Any) -> int:
    held = variables.tracked_variables(replay_buffer)
    return sum(v.shape.num_elements() * v.dtype.size for v in held)
