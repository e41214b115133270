"""The outputs of a run: files in its directory, or nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.environments import tf_environment
from tfrl.policies.saving import weights
from tfrl.savers import checkpoint_files, whole_checkpoints
from tfrl.system import log
from tfrl.train.loops import training_loop
from tfrl.train.runs import (
    finished_runs,
    learning_curve,
    run_directory,
    run_length,
    saved_policies,
    stopped_runs,
    video,
)
from tfrl.utils import number_checks, variables

_LARGEST_BUFFER_TO_SAVE = 10**9  # Bytes.

Report = Callable[[pathlib.Path], Sequence[str]]
Film = (
    tf_environment.TFEnvironment
    | Callable[[], tf_environment.TFEnvironment | None]
    | None
)


@dataclasses.dataclass(frozen=True)
class RunFiles:
    """What the directory of a run holds in addition to its log and its policies.

    Attributes:
      max_to_keep: The number of newest checkpoints to keep; None keeps all.
      checkpoint_replay_buffer: Whether checkpoints include the replay buffer; None
        includes it up to 1 GB. Without it, a resumed run collects initial experience
        again.
      video_environment: An environment of batch size 1 for the video of the saved
        policy, or a function that makes it at the end, after which the run closes it.
        None records no video, nor does a function that returns None.
      title: The title of the learning curve.
      report: Called with the folder when training has ended; writes a report there, and
        returns the lines to show. None writes none.

    Raises:
      ValueError: `max_to_keep` is not positive.
    """

    max_to_keep: int | None = 3
    checkpoint_replay_buffer: bool | None = None
    video_environment: Film = None
    title: str = ""
    report: Report | None = None

    def __post_init__(self) -> None:
        number = 1 if self.max_to_keep is None else self.max_to_keep
        number_checks.check_integer(
            "max_to_keep", number, 1, remedy="give a positive number"
        )


class Outputs:
    """The outputs of a run without a directory: none.

    Attributes:
      restored_path: The checkpoint from which the run continues, if there is one.
      not_saved: The names of the loop's items that checkpoints lack.
    """

    restored_path: str | None = None
    not_saved: Sequence[str] = ()

    def __init__(self, loop: training_loop.TrainingLoop) -> None:
        """Stores the loop."""
        self._loop = loop
        self._best_return = tf.Variable(float("-inf"), trainable=False)
        self._evaluated_at: int | None = None

    @property
    def best_return(self) -> float | None:
        """The mean return of the best policy; None before there is one."""
        best = float(self._best_return)
        return None if best == float("-inf") else best

    def lock(self) -> None:
        """Keeps other processes out, until `unlock`."""

    def unlock(self) -> None:
        """Lets other processes use the outputs."""

    def find_stop(
        self, length: run_length.RunLength, done: int, *, continues: bool
    ) -> stopped_runs.Stop | None:
        """Returns how a callback has stopped the run; None if it goes on.

        Args:
          length: The length of the run.
          done: What the program itself has done of it; it has passed earlier stops.
          continues: Whether such a run continues, so that the stop is forgotten.
        """
        del length, done, continues
        return None

    def mark_stopped(self, stop: stopped_runs.Stop) -> None:
        """Records that a callback has stopped the run, so that it stays stopped."""

    def begin(self) -> dict[str, tuple[int, int]]:
        """Prepares for training; returns lengths that have changed, see `grow`."""
        return {}

    def check_intact(self, iteration: int) -> None:
        """Checks that nobody has removed outputs since the run began."""

    def check_finite(self) -> None:
        """Checks that the weights are finite.

        Raises:
          CheckpointError: They are not.
        """
        checkpoint = tf.train.Checkpoint(**self._loop.checkpoint_items(False))
        whole_checkpoints.check_finite(checkpoint)

    def has_evaluation(self, iteration: int) -> bool:
        """Whether the policy was evaluated at an iteration."""
        return iteration == self._evaluated_at

    def evaluated(self, iteration: int, mean: float) -> bool:
        """Takes the result of an evaluation; returns whether its policy is the best.

        The untrained policy never is.

        Args:
          iteration: The iteration of the policy.
          mean: The mean return.
        """
        self._evaluated_at = iteration
        is_best = iteration > 0 and mean >= float(self._best_return)
        if is_best:
            self._best_return.assign(np.float32(mean))
        return is_best

    def save_last_policy(self) -> None:
        """Saves the policy as the last one, and as the best if there is no better."""

    def save_checkpoint(self, iteration: int) -> str | None:
        """Saves a checkpoint and returns its path; None without a directory."""
        del iteration
        return None

    def mend_policies(self, *, is_finished: bool) -> None:
        """Writes missing or damaged policies again.

        Args:
          is_finished: Whether the run has come to its end.
        """

    def finish(self, *, is_finished: bool, films: bool) -> None:
        """Writes what belongs to the end of a run.

        Args:
          is_finished: Whether the run has come to its end.
          films: Whether there is time for a film, which takes minutes if a simulator
            draws its pictures without a GPU.
        """

    def report(self) -> Sequence[str]:
        """Writes a report, and returns the lines to show."""
        return ()

    def finished_text(self, iteration: int) -> str:
        """Returns the message for the user who starts a finished run again."""
        return f"This run is finished: {iteration:,} iterations done."

    def how_to_go_on(self) -> str:
        """Returns advice on continuing after an error."""
        return "without a logdir nothing of it is saved"

    def stopped_text(self, stop: stopped_runs.Stop) -> str:
        """Returns the message for the user who starts a stopped run again."""
        raise NotImplementedError

    def saved_text(self, path: str | None, stopped_by: str | None) -> str:
        """Returns how a run continues.

        Args:
          path: The checkpoint that was saved.
          stopped_by: What stopped the run; None for a signal.
        """
        del path, stopped_by
        return "another call of learn continues it."


class DirectoryOutputs(Outputs):
    """The outputs of a run in a `RunDirectory`."""

    def __init__(
        self,
        loop: training_loop.TrainingLoop,
        directory: run_directory.RunDirectory,
        *,
        evaluates: bool,
        files: RunFiles,
        **state: Any,
    ) -> None:
        """Restores the run's last checkpoint, if there is one.

        Args:
          loop: The loop.
          directory: The directory.
          evaluates: Whether the run evaluates its policy.
          files: What else to write.
          **state: Further objects that checkpoints hold, by name.
        """
        super().__init__(loop)
        self._directory = directory
        self._evaluates = evaluates
        self._files = files
        self._policies = saved_policies.SavedPolicies(loop.agent)
        with_buffer = files.checkpoint_replay_buffer
        if with_buffer is None:
            buffer = loop.checkpoint_items().get("replay_buffer")
            size = 0 if buffer is None else _bytes_of(buffer)
            with_buffer = size <= _LARGEST_BUFFER_TO_SAVE
        saved = loop.checkpoint_items(with_buffer)
        self.not_saved = sorted(loop.checkpoint_items().keys() - saved.keys())
        with contextlib.ExitStack() as after_error:
            after_error.callback(directory.unlock)
            directory.lock()
            checkpoint_files.remove_unfinished(directory.checkpoints)
            directory.check_checkpoints()
            self._checkpointer = whole_checkpoints.Checkpointer(
                directory.checkpoints,
                max_to_keep=files.max_to_keep,
                best_return=self._best_return,
                **state,
                **saved,
            )
            after_error.pop_all()
        self.restored_path = self._checkpointer.restored_path

    def lock(self) -> None:
        """Keeps other processes out, until `unlock`."""
        self._directory.lock()

    def unlock(self) -> None:
        """Lets other processes use the directory."""
        self._directory.unlock()

    def find_stop(
        self, length: run_length.RunLength, done: int, *, continues: bool
    ) -> stopped_runs.Stop | None:
        """Returns how a callback has stopped the run; None if it goes on."""
        if continues:
            stopped_runs.unmark(self._directory.path, length)
        stop = stopped_runs.find(self._directory.path, length)
        # Checkpoints from the stop on may be lost.
        if stop is None or done >= stop.done or self._loop.iteration < stop.iteration:
            return None
        return stop

    def mark_stopped(self, stop: stopped_runs.Stop) -> None:
        """Records that a callback has stopped the run, so that it stays stopped."""
        stopped_runs.mark(self._directory.path, stop)

    def begin(self) -> dict[str, tuple[int, int]]:
        """Prepares for training; returns lengths that have changed, see `grow`."""
        grown = self._directory.grow()
        is_new = self.restored_path is None
        self._directory.forget_after(-1 if is_new else self._loop.iteration)
        return grown

    def check_intact(self, iteration: int) -> None:
        """Checks that nobody has removed outputs since the run began."""
        self._directory.check_intact(iteration)

    def check_finite(self) -> None:
        """Checks that the weights are finite."""
        self._checkpointer.check_finite()

    def has_evaluation(self, iteration: int) -> bool:
        """Whether metrics.csv has an evaluation at an iteration."""
        return self._directory.evaluation_return(iteration) is not None

    def evaluated(self, iteration: int, mean: float) -> bool:
        """Takes the result of an evaluation, and saves the best policy."""
        is_best = super().evaluated(iteration, mean)
        if is_best:
            self._policies.save(self._directory.policy)
        return is_best

    def save_last_policy(self) -> None:
        """Saves the policy as the last one, and as the best if there is no better."""
        self._policies.save(self._directory.final_policy)
        if self.best_return is None:
            self._policies.save(self._directory.policy)

    def save_checkpoint(self, iteration: int) -> str | None:
        """Saves a checkpoint and returns its path."""
        return self._checkpointer.save(iteration)

    def mend_policies(self, *, is_finished: bool) -> None:
        """Writes missing or damaged policies again."""
        best, iteration = float(self._best_return), self._loop.iteration
        expected = self._expected_policies(is_finished)
        now = self._policies.repair(expected, self._directory, iteration, best)
        if now != best:
            self._best_return.assign(now)
            self._checkpointer.save(iteration)

    def _expected_policies(self, is_finished: bool) -> list[pathlib.Path]:
        """Returns the paths of the policies that this run has saved until now."""
        expected = [self._directory.final_policy] * is_finished
        if self.best_return is not None or (is_finished and not self._evaluates):
            expected.append(self._directory.policy)
        return expected

    def finish(self, *, is_finished: bool, films: bool) -> None:
        """Draws the learning curve, films the policy, and marks a finished run."""
        directory = self._directory
        if not all(path.exists() for path in self._expected_policies(is_finished)):
            self.mend_policies(is_finished=is_finished)
        if directory.metrics_csv.exists():
            learning_curve.plot_learning_curve(
                directory.metrics_csv, directory.learning_curve, self._files.title
            )
        if films and directory.policy.exists():
            self._film()
        if is_finished and (films or self._files.video_environment is None):
            directory.mark_finished(self._loop.iteration)

    def _film(self) -> None:
        """Films the saved policy, if there is an environment to film.

        The run is as good without the film, so an exception becomes a warning.
        """
        try:
            self._write_film()
        except Exception as error:
            log.warn(
                f"The film {self._directory.video} could not be made: "
                f"{type(error).__name__}: {error} (The run is complete without it; "
                f"`tfrl play {self._directory.path}` makes a film.)"
            )

    def _write_film(self) -> None:
        given = self._files.video_environment
        environment = given() if callable(given) else given
        if environment is None:
            return
        with contextlib.ExitStack() as stack:
            if callable(given):
                stack.callback(environment.close)
            policy = self._loop.agent.policy
            stack.enter_context(weights.borrowed(policy, self._directory.policy))
            video.record_video(environment, policy, self._directory.video)

    def report(self) -> Sequence[str]:
        """Writes a report, and returns the lines to show."""
        report = self._files.report
        return () if report is None else report(self._directory.path)

    def finished_text(self, iteration: int) -> str:
        """Returns the message for the user who starts a finished run again."""
        return finished_runs.text(iteration, self._directory.path)

    def how_to_go_on(self) -> str:
        """Returns advice on continuing after an error."""
        path = tf.train.latest_checkpoint(str(self._directory.checkpoints))
        if path is None:
            return (
                "no checkpoint was saved before; the same command begins the run again"
            )
        return f"the same command resumes from {path}"

    def stopped_text(self, stop: stopped_runs.Stop) -> str:
        """Returns the message for the user who starts a stopped run again."""
        return stop.text(self._directory.path)

    def saved_text(self, path: str | None, stopped_by: str | None) -> str:
        """Returns how a run continues."""
        how = "Run the same command again to resume from there."
        if stopped_by:
            how = (
                "The same command leaves it stopped; --continue, or "
                "continue_stopped=True in Python, continues from there."
            )
        return f"saved {path}. {how}"


def _bytes_of(replay_buffer: Any) -> int:
    held = variables.tracked_variables(replay_buffer)
    return sum(v.shape.num_elements() * v.dtype.size for v in held)
