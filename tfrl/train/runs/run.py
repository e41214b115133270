"""Runs a training loop to its end, with evaluation, logs, checkpoints and outputs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfrl.environments.boundary import running_steps
from tfrl.eval import evaluate as evaluate_lib
from tfrl.loggers import base
from tfrl.system import interrupts
from tfrl.train.loops import training_loop
from tfrl.train.runs import callbacks as callbacks_lib
from tfrl.train.runs import (
    evaluations,
    full_disk,
    outputs,
    progress,
    run_directory,
    run_length,
    run_log,
    stopped_runs,
)
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.typing import types


class Run:
    """Runs a loop to completion and writes the outputs of a `RunDirectory`.

    Without a directory it does the same and writes nothing. A run that was interrupted
    or killed resumes from its last checkpoint when it is run again. On SIGINT (Ctrl-C),
    SIGTERM or SIGHUP (a terminal that closes) it stops after the current call, which
    takes about half a second, and saves a checkpoint; an evaluation by an `Evaluator`
    stops in the same way, and is done again after the run is resumed. A second SIGINT
    or SIGTERM stops it immediately. If a step of the environment does not return, that
    ends the process with status 130 (SIGINT) or 143 (SIGTERM). A SIGHUP that the
    process ignores, as with nohup, stays ignored. A callback may stop the run, too; see
    `Callback`. It then stays stopped when it is run again, unless you give
    `continue_stopped` or another length.

    A finished run becomes longer if it is run again with a larger `num_iterations` or
    `num_environment_steps`. It continues from its last checkpoint. A schedule that the
    caller makes from the length, such as a learning rate that decays until the end,
    then has the values for the longer run, so its value may jump.

    Until `run` ends, the run holds the lock of its directory, so that no other process
    trains there.

    Attributes:
      stop: The stop by a callback because of which `run` has not trained, or None.
    """

    def __init__(
        self,
        loop: training_loop.TrainingLoop,
        directory: run_directory.RunDirectory | None,
        *,
        num_iterations: int | None = None,
        num_environment_steps: int | None = None,
        evaluate: evaluations.Evaluate = None,
        eval_interval: int = 1000,
        log_interval: int = 1000,
        checkpoint_interval: int = 10000,
        limits: evaluations.EvaluationLimits | None = None,
        files: outputs.RunFiles | None = None,
        loggers: Sequence[base.Logger] = (),
        metrics: Mapping[str, Callable[[], types.Float]] | None = None,
        view: run_log.RunView | None = None,
        callbacks: Sequence[callbacks_lib.Callback] = (),
        is_interrupted: Callable[[], bool] = lambda: False,
        shows_progress: bool = True,
        continue_stopped: bool = False,
        find_facts: Callable[[], Mapping[str, Any]] | None = None,
        rows: list[dict[str, Any]] | None = None,
    ) -> None:
        """Creates the run and restores its last checkpoint, if there is one.

        Args:
          loop: The loop to run.
          directory: The directory of the outputs; None writes nothing.
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
            before the first iteration, unless `limits` leave this out, and after the
            last.
          log_interval: Iterations between rows of metrics.csv.
          checkpoint_interval: Iterations between checkpoints; one is also saved after
            every evaluation.
          limits: The limits of an evaluation's steps; None takes the defaults.
          files: What else a directory holds, such as a film; None takes the
            defaults.
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
          is_interrupted: Returns whether to stop as after a signal, for a run that no
            signal reaches, such as a run on a thread other than the main thread.
          shows_progress: Whether to show the progress; warnings, and a line that says
            how an interrupted run continues, are shown in any case.
          continue_stopped: Whether a run that a callback has stopped continues.
          find_facts: Returns facts about the environment, for the first row of
            diagnostics.jsonl; called once. None leaves them out.
          rows: What earlier runs of the loop have measured. Without a directory, the
            run adds its rows.

        Raises:
          ValueError: An interval or number is not positive, or both lengths or neither
            are given, or the loop has no environment whose steps could be counted, or
            one of `metrics` has the name of a column.
          RunDirectoryError: Another process uses the directory, or it holds outputs
            whose checkpoints are lost.
          CheckpointError: There are checkpoints, but none can be used, or they belong
            to a loop with other variables.
          TypeError: One of `loggers` has no `write` and `close`, or one of `callbacks`
            is not a `Callback` or has a method that no event calls, or one of `metrics`
            is not a function.
        """
        for name, value in (
            ("eval_interval", eval_interval),
            ("log_interval", log_interval),
            ("checkpoint_interval", checkpoint_interval),
        ):
            number_checks.check_integer(name, value, 1, remedy="give a positive number")
        self._length = run_length.RunLength(num_iterations, num_environment_steps)
        self._length.check(loop)
        self._callbacks = callbacks_lib.CallbackList(callbacks)
        self._log = run_log.RunLog(
            loop,
            directory,
            loggers,
            {**self._callbacks.logged_metrics, **(metrics or {})},
            view,
            find_facts,
            rows,
        )
        # What the program itself has done of the length, before a checkpoint is read.
        self._done_here = self._length.done(loop.info())
        self.stop: stopped_runs.Stop | None = None
        self._words = tuple if view is None else view.words
        self._loop = loop
        self._evaluations = evaluations.Evaluations(
            loop,
            self._log,
            evaluate,
            eval_interval,
            limits or evaluations.EvaluationLimits(),
        )
        self._eval_interval = eval_interval
        self._log_interval = log_interval
        self._checkpoint_interval = checkpoint_interval
        self._is_interrupted = is_interrupted
        self._shows_progress = shows_progress
        self._continue_stopped = continue_stopped
        self._outputs = (
            outputs.Outputs(loop)
            if directory is None
            else outputs.DirectoryOutputs(
                loop,
                directory,
                evaluates=evaluate is not None,
                files=files or outputs.RunFiles(),
                seconds=self._log.seconds,
                loss=self._log.loss,
                **self._callbacks.saved_states,
            )
        )

    def run(self) -> callbacks_lib.RunResult:
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
        self._outputs.lock()
        first = self._loop.iteration
        resumed_at = None if self._outputs.restored_path is None else first
        if resumed_at is not None:
            self._outputs.mend_policies(is_finished=self._is_finished())
        bar = progress.Progress(
            self._loop.info(),
            self._length,
            words=self._words,
            is_shown=self._shows_progress,
        )
        with contextlib.ExitStack() as stack:
            stack.enter_context(full_disk.explaining())
            stack.callback(self._outputs.unlock)
            stack.callback(bar.close)
            stack.callback(self._log.close_loggers)
            if self._is_finished():
                bar.announce(self._outputs.finished_text(first))
                self._outputs.finish(is_finished=True, films=True)
                return self._result(resumed_at, bar)
            self.stop = self._outputs.find_stop(
                self._length, self._done_here, continues=self._continue_stopped
            )
            if self.stop is not None:
                bar.announce(self._outputs.stopped_text(self.stop))
                return self._result(resumed_at, bar, self.stop.stopped_by)
            grown = self._outputs.begin()
            if devices := self._loop.describe_devices():
                bar.note(devices)
            if resumed_at is not None:
                self._note_resumption(bar, grown)
            most_steps = self._loop.most_steps_per_iteration
            self._callbacks.warn_of_missed(
                self._length.most_iterations(most_steps), most_steps
            )
            self._callbacks.start(first)
            try:
                self._train(bar, resumed_at, grown)
            except Exception as error:
                error.add_note(
                    f"It ended the run at iteration {self._loop.iteration:,}; "
                    f"{self._outputs.how_to_go_on()}."
                )
                raise
            for line in self._outputs.report():
                bar.announce(line)
            result = self._result(resumed_at, bar, self._callbacks.stopped_by)
            if result.stopped_by:
                info = self._loop.info()
                self._outputs.mark_stopped(
                    stopped_runs.Stop(
                        self._length,
                        info.iteration,
                        info.environment_steps,
                        result.stopped_by,
                    )
                )
            self._callbacks.call(on_end=result)
            return result

    def save(self) -> str | None:
        """Saves a checkpoint and the policy as they are now, without training.

        Returns the path of the checkpoint. The directory is then free for others.

        Raises:
          CheckpointError: The weights are not finite.
          FullDiskError: There is no space left.
          RunDirectoryError: Another process uses the directory.
        """
        self._outputs.lock()
        with full_disk.explaining():
            path = self._outputs.save_checkpoint(self._loop.iteration)
            self._outputs.save_last_policy()
        self._outputs.unlock()
        return path

    def _note_resumption(
        self, bar: progress.Progress, grown: dict[str, tuple[int, int]]
    ) -> None:
        steps = self._loop.info().environment_steps
        bar.note(
            f"Resumed at iteration {self._loop.iteration:,}"
            + (f", environment step {steps:,}" if steps else "")
            + f", from {self._outputs.restored_path}."
        )
        for field, (before, now) in grown.items():
            bar.announce(
                f"{field} has {'grown' if now > before else 'fallen'} from {before:,} "
                f"to {now:,}. Schedules that depend on it, such as a learning rate "
                "that decays until the end, follow the run's new length from here on, "
                "so their values may jump; all other schedules continue unchanged."
            )

    def _train(
        self,
        bar: progress.Progress,
        resumed_at: int | None,
        grown: dict[str, tuple[int, int]],
    ) -> None:
        """Trains and writes all outputs."""
        signals = interrupts.requested(interrupts.SIGNALS, running_steps.describe)
        slow = running_steps.naming_slow(bar.announce)
        opened = self._log.opened(self._resumed_without(resumed_at), grown)
        with opened, slow, signals as is_requested:

            def interrupted() -> bool:
                return is_requested() or self._is_interrupted()

            def goes_on() -> bool:
                return not (interrupted() or self._callbacks.stopped_by)

            begins = resumed_at is None and self._loop.iteration == 0
            if goes_on() and (begins or self._evaluation_is_missing()):
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
        self._outputs.check_intact(self._loop.iteration)
        self._outputs.finish(is_finished=self._is_finished(), films=not interrupted())

    def _resumed_without(self, resumed_at: int | None) -> list[str] | None:
        """Returns what the checkpoint of a resumed run lacks; None for a new run.

        Where something is missing, the run differs from one that was not interrupted.
        """
        if resumed_at is None:
            return None
        has_stepped = self._loop.info().environment_steps > 0
        begins_episode = has_stepped and not self._loop.has_position()
        return [*self._outputs.not_saved, *["environment"] * begins_episode]

    def _end_untrained(
        self, bar: progress.Progress, info: training_loop.IterationInfo
    ) -> None:
        """Saves a run that ended while it collected its initial experience."""
        bar.announce(
            f"The run ended before its first update: its {info.environment_steps:,} "
            "environment steps are initial experience, so nothing was learned. Train "
            "for more steps, or lower initial_collect_steps."
        )
        self._outputs.save_last_policy()
        self._outputs.save_checkpoint(info.iteration)

    def _end_early(self, bar: progress.Progress) -> None:
        """Saves a run that was interrupted or stopped, and prints how it continues."""
        if self._is_finished():
            return
        iteration, stopped_by = self._loop.iteration, self._callbacks.stopped_by
        self._outputs.check_intact(iteration)
        path = self._outputs.save_checkpoint(iteration)
        if stopped_by:
            self._outputs.save_last_policy()
        self._callbacks.call(on_checkpoint=path)
        cause = f"Stopped at iteration {iteration:,} by {stopped_by}"
        if not stopped_by:
            cause = f"Interrupted at iteration {iteration:,}"
            steps = self._loop.info().environment_steps
            if steps and not iteration:
                cause = (
                    f"Interrupted after {steps:,} environment steps, before learning"
                )
        bar.announce(f"{cause}; {self._outputs.saved_text(path, stopped_by)}")

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
        iteration, at_end = info.iteration, self._length.is_reached(info)
        self._outputs.check_intact(iteration)
        is_evaluated = at_end or self._evaluations.are_due(iteration)
        result = None
        if is_evaluated:
            # A policy whose weights are not finite is neither evaluated nor saved.
            self._outputs.check_finite()
            try:
                result = self._evaluations.evaluate(bar, interrupted, at_end=at_end)
            except evaluate_lib.EvaluationInterruptedError:
                return
        row = None
        if is_evaluated or iteration % self._log_interval == 0:
            row = self._log.write(result or self._evaluations.take_arrived())
        self._note_result(bar, result)
        if at_end:
            self._outputs.save_last_policy()
        path = None
        is_saved = is_evaluated or iteration % self._checkpoint_interval == 0
        if is_saved and iteration:
            path = self._outputs.save_checkpoint(iteration)
        self._callbacks.call(on_log=row, on_evaluation=result, on_checkpoint=path)

    def _note_result(
        self, bar: progress.Progress, result: evaluate_lib.EvaluationResult | None
    ) -> bool:
        """Shows a result, and saves its policy if it is the best; returns whether."""
        if result is None:
            return False
        is_best = self._outputs.evaluated(result.iteration or 0, result.mean)
        bar.evaluated(result.mean, self._outputs.best_return)
        return is_best

    def _take_late(self, bar: progress.Progress) -> None:
        """Takes the evaluations elsewhere that have ended."""
        for result, weights in self._evaluations.take_late():
            with weights:
                is_best = self._note_result(bar, result)
            path = None
            # A resumed run must know the return of the best policy.
            if is_best:
                path = self._outputs.save_checkpoint(self._loop.iteration)
            self._callbacks.call(on_evaluation=result, on_checkpoint=path)

    def _is_finished(self) -> bool:
        """Whether all iterations, and the last evaluation, are done."""
        at_end = self._length.is_reached(self._loop.info())
        return at_end and not self._evaluation_is_missing()

    def _evaluation_is_missing(self) -> bool:
        """Whether an evaluation is due at this iteration and metrics.csv lacks it."""
        info = self._loop.info()
        at_end = self._length.is_reached(info)
        is_due = self._evaluations.give_result_at(info.iteration, at_end=at_end)
        return is_due and not self._outputs.has_evaluation(info.iteration)

    def _result(
        self,
        resumed_at: int | None,
        bar: progress.Progress,
        stopped_by: str | None = None,
    ) -> callbacks_lib.RunResult:
        finished = self._is_finished()
        return callbacks_lib.RunResult(
            iteration=self._loop.iteration,
            finished=finished,
            resumed_at=resumed_at,
            best_return=self._outputs.best_return,
            last_return=self._evaluations.last_return,
            stopped_by=None if finished else stopped_by,
            **bar.speeds(),
        )
