"""The base of the algorithms: an agent with its networks, replay, loop and settings.

Each class of this package is one algorithm, whose fields are its settings. Python
programs use it as `tfrl.PPO`; the command, score tables, sweeps and distributed runs
make the same parts with it.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from tfrl import datasets, train
from tfrl import eval as evaluation
from tfrl.algorithms import (
    learning,
    other_words,
    run_folders,
    run_settings,
)
from tfrl.algorithms import recipe as recipe_lib
from tfrl.algorithms.builder import Builder
from tfrl.reports import evidence as evidence_lib
from tfrl.reports import health as health_lib
from tfrl.system import interrupts, paths
from tfrl.train.runs import run_files, run_length
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.policies.acting import prediction


class Algorithm(Builder):
    """An algorithm with its settings, which trains an agent in an environment.

    ```python
    ppo = tfrl.PPO("CartPole-v1", seed=0, learning_rate=3e-4).learn(50_000)
    ppo.evaluate(20).mean
    action, state = ppo.predict(observation)
    ppo.save("cart_pole")
    ppo = tfrl.load("cart_pole").learn(50_000)
    ```

    Its settings are attributes, such as `ppo.learning_rate`. They can be set until the
    first use of a part makes the parts.

    Args:
      environment: Where to train: the name of an environment, a function that makes
        one, or an environment; see `worlds.World`. None for `environment_name`.
      evaluation_environment: The same, to evaluate and film in.
      network: A network, or a model of Keras, or a function that makes one from the
        spec of its input and the spec of the actions. For an agent with several
        networks, a dict of some of them, by the names of the agent's arguments; the
        algorithm makes the others.
      encoder: A layer or a model of Keras that encodes the observation, or a dict of
        them for leaves of a dict, for all networks; the hidden layers and outputs after
        it are the algorithm's. See `networks.observation_encoder`.
      exploration: A function that makes the collect policy from the agent's policy, for
        agents that take `exploration`.
      replay_buffer: A buffer, or a function of the agent's `collect_data_spec` and the
        number of environments that makes one.
      agent: A subclass of the algorithm's agent, or a function with its arguments.
      agent_arguments: Further arguments of the agent.
      environment_name: The environment's name, if `environment` is not a name.
      initial_run: The folder of a run, to begin with its last weights; see
        `train.load_weights`. A run that resumes in `logdir` has its own.
      logdir: The folder of the run: `learn` writes all outputs there, and resumes. None
        writes no file.
      preset: The name of a preset; empty for the environment's preset, if there is one.
        `tfrl list settings` lists the presets.
      settings: Settings by name, as the attribute `settings` of another one, instead of
        a preset's.
      **values: Settings, which go before those of the preset, and options of the
        environment, such as `emulator` of Atari's games; see `suites.Option`.

    Raises:
      TypeError: There is no such setting, or `environment` is not an environment.
      ValueError: A setting is out of its range, or the preset is for another algorithm,
        or the run is to begin with the weights in its own folder.

    Attributes:
      name: Its name on the command line and in the names of folders.
      title: Its name for readers.
      agent_name: The name of its agent's class in `tfrl.agents`.
      environment_name: The environment that it trains in by default.
      relative: An algorithm whose presets it takes, too, except for settings that its
        own class declares.
      actions: The kind of actions that it chooses; see `spaces`.
      is_offline: Whether it learns from recorded data, and steps no environment.
      takes_masks: Whether its agent takes masks of one discrete action.
      has_own_critics: Whether its critics may see what its actor does not.
      preset: The preset whose settings it takes; None if there is none.
      options: The options of the environment that are not at their defaults, by name.
    """

    @other_words.explained
    def learn(
        self,
        num_environment_steps: int | None = None,
        *,
        total: int | None = None,
        callbacks: Sequence[train.Callback] = (),
        metrics: Mapping[str, Callable[[], Any]] | None = None,
        progress: bool = True,
        continue_stopped: bool = False,
        overwrite: bool = False,
    ) -> Self:
        """Trains for more steps; a second call continues the training.

        Schedules, such as a learning rate that falls, span the first call, or `total`;
        later calls keep their last values. `learn(a, total=a + b)` and then `learn(b)`
        does the same as `learn(a + b)`.

        If a callback has stopped the training, the next call continues it. With a
        `logdir`, the training stays stopped when the same program is started again.

        Args:
          num_environment_steps: Steps of the environments, summed over all; updates for
            an algorithm that learns from recorded data. None for the length that the
            settings give.
          total: The steps of all calls together.
          callbacks: `train.Callback`s. They see evaluations, too.
          metrics: Further numbers for TensorBoard and the callbacks' `on_log`, by name:
            a function for each, which returns its current value.
          progress: Whether to show the progress; warnings are shown in any case.
          continue_stopped: Whether to continue if a callback stopped this call when an
            earlier program trained in `logdir`.
          overwrite: Whether to remove the outputs of an earlier run in `logdir` first.

        Raises:
          ValueError: A length is not positive, or there is no `logdir` to overwrite, or
            a setting is a schedule, which a run in a `logdir` cannot store.
          RunDirectoryError: `logdir` belongs to another run, or to one that was begun
            with a greater length and has not reached this one.
          KeyboardInterrupt: Ctrl-C was pressed; a run with a `logdir` has saved a
            checkpoint.
          SystemExit: SIGTERM or SIGHUP came, with status 143 or 129; a run with a
            `logdir` has saved a checkpoint.
          Exception: An exception of the environment or of a callback.
        """
        num_environment_steps = _whole("num_environment_steps", num_environment_steps)
        total = _whole("total", total)
        if overwrite:
            self._remove_outputs()
        if self._loop is None:
            self.build(total or num_environment_steps)
        length = self.length = self._longer(num_environment_steps)
        if self.logdir and learning.has_trained_on(self, length):
            # A later call of `learn` has trained on before this program began.
            learning.restore_longer(self, self.logdir, length)
            return self
        run = self.run(
            self.open_folder() if self.logdir else None,
            callbacks=callbacks,
            metrics=metrics,
            # Callbacks see evaluations; without files nobody else does.
            evaluates=bool(self.logdir or callbacks),
            shows_progress=progress,
            continue_stopped=continue_stopped,
        )
        result = run.run()
        if run.stop is not None:
            self.length = length.with_total(run.stop.done)
        elif not (result.finished or result.stopped_by):
            interrupts.stop()
        return self

    def run(
        self,
        directory: train.RunDirectory | None = None,
        *,
        callbacks: Sequence[train.Callback] = (),
        **options: Any,
    ) -> train.Run:
        """Returns the run that trains up to `length`.

        Args:
          directory: The folder of its outputs; None writes nothing.
          callbacks: The callbacks.
          **options: See `run_settings.make_run`.
        """
        return run_settings.make_run(self, directory, callbacks=callbacks, **options)

    def open_folder(
        self, folder: pathlib.Path | None = None, *, overwrite: bool = False
    ) -> train.RunDirectory:
        """Returns the folder of a run.

        Args:
          folder: The folder; None for `logdir`.
          overwrite: Whether to remove the outputs of an earlier run first.

        Raises:
          RunDirectoryError: The folder belongs to another run.
          ValueError: A setting is a schedule, which config.json cannot hold.
        """
        path = folder or self.logdir
        assert path is not None
        return run_folders.open_folder(path, self.recipe(), overwrite=overwrite)

    def recipe(self) -> recipe_lib.Recipe:
        """Returns what the run is made by."""
        return recipe_lib.Recipe.of_algorithm(self)

    def _remove_outputs(self) -> None:
        """Removes the outputs in the folder of the run."""
        if self.logdir is None:
            raise ValueError(
                "overwrite: got True without a logdir, where the outputs of a run "
                f"would be; leave it out, or give {type(self).__name__}(logdir=...)."
            )
        run_folders.remove_outputs(self.logdir)
        if self._loop is not None and self.initial_run and not self.loop.iteration:
            train.load_weights(self.agent, self.initial_run)

    def _longer(self, num_environment_steps: int | None) -> run_length.RunLength:
        """Returns the length that all calls of `learn` reach together."""
        by_iterations = (
            num_environment_steps is None or self.loop.most_steps_per_iteration == 0
        )
        more = num_environment_steps or 0
        if by_iterations:
            more = more or self.num_iterations

        def of(total: int) -> run_length.RunLength:
            numbers = (total, None) if by_iterations else (None, total)
            return run_length.RunLength(*numbers)

        info, before = self.loop.info(), self._length
        done = of(0).done(info)
        if before is not None and before.unit == of(0).unit and before.is_reached(info):
            done = before.total
        length = of(done + more)
        length.check(self.loop)
        return length

    @other_words.explained
    def evaluate(
        self, num_episodes: int = 10, *, greedy: bool = True, seed: int = 0
    ) -> evaluation.EvaluationResult:
        """Plays episodes and returns their returns and lengths.

        Args:
          num_episodes: The number of episodes, which run side by side.
          greedy: Whether to take the most probable actions instead of sampled ones.
          seed: The seed of the episodes.

        Raises:
          ValueError: There is no environment to evaluate in, see `worlds.World`, or
            there are no episodes.
          TypeError: The number of episodes is no integer.
        """
        number_checks.check_integer(
            "num_episodes", num_episodes, 1, remedy="play at least one"
        )
        environment = self.world.make_evaluation(num_episodes, seed)
        policy = self.policy if greedy else self.agent.collect_policy
        return evaluation.Evaluator(environment, policy, num_episodes, seed).run()

    @other_words.explained
    def predict(
        self, observation: Any, state: Any = None, *, greedy: bool = True
    ) -> tuple[Any, Any]:
        """Returns the action for an observation, and the policy's next state.

        Args:
          observation: An observation, or a batch `[B, ...]` of them.
          state: The state that the call before returned; None at the beginning of an
            episode. Policies without memory return `()`.
          greedy: Whether to take the most probable action instead of a sampled one.

        Raises:
          TypeError: A value cannot be cast to the dtype of its spec.
          ValueError: A structure or shape differs from the environment's, or a number
            is not finite.
        """
        policy = self.policy if greedy else self.agent.collect_policy
        action, state = self._predictors[greedy](policy, observation, state, None)
        return self.world.fit.original(action), state

    @functools.cached_property
    def _predictors(self) -> dict[bool, prediction.Predictor]:
        """The predictors of the greedy policy, and of the collect policy.

        They trace the policies at once, as training loops do.
        """
        from tfrl.policies.acting import prediction

        spec = self.policy.time_step_spec
        return {
            greedy: prediction.of_tensors(spec, at_once=True)
            for greedy in (True, False)
        }

    def evidence(self) -> evidence_lib.Evidence:
        """Returns the measurements of the run so far, for `health` and reports."""
        rows = self.rows
        if self.logdir is not None:
            rows = run_files.read_rows(self.logdir / "diagnostics.jsonl")
        return evidence_lib.Evidence(rows, self.recipe().to_json())

    def health(self) -> list[health_lib.Finding]:
        """Returns findings about why the run may not learn; none if it is healthy.

        A rule reports a number of the run that is far from its usual range; see
        `reports.health`. Rules about evaluations need a `logdir`, or callbacks.
        """
        return health_lib.check(self.evidence())

    def record(
        self,
        path: str | pathlib.Path,
        num_episodes: int = 100,
        *,
        greedy: bool = True,
        seed: int = 0,
        overwrite: bool = False,
    ) -> int:
        """Writes the frames of whole episodes to a file, to learn from offline.

        Give the file to `tfrl.IQL(data=path)`, for example; see
        `datasets.load_recordings`.

        Args:
          path: The TFRecord file.
          num_episodes: The number of episodes.
          greedy: Whether to take the most probable actions instead of sampled ones.
          seed: The seed of the episodes.
          overwrite: Whether to replace an older recording, when all is recorded.

        Returns:
          The number of frames.

        Raises:
          ValueError: There is no environment to play in, see `worlds.World`; or there
            is an older recording without `overwrite`, or a file of another kind.
        """
        datasets.recordings.check_replaceable("path", path, overwrite=overwrite)
        environment = self.world.make_evaluation(1, seed)
        policy = self.policy if greedy else self.agent.collect_policy
        return datasets.recordings.record(environment, policy, num_episodes, path, seed)

    def export(
        self,
        path: str | pathlib.Path,
        format: str = "onnx",
        *,
        overwrite: bool = False,
    ) -> pathlib.Path:
        """Writes the greedy policy for programs without tfrl, and checks the file.

        The actions are those that `predict` returns; a SavedModel has the policy's own.
        The file is compared with the policy on 1,000 random observations.

        Args:
          path: The file, or for "savedmodel" the folder. For "numpy" it is a module,
            `policy.py`, and its arrays are written beside it, in `policy.npz`.
          format: "onnx", "litert", "savedmodel" or "numpy". The first two need the
            extra: `pip install 'tfrl[export]'`.
          overwrite: Whether to replace an older export of this format.

        Returns:
          The path.

        Raises:
          ImportError: The packages of the format are not installed.
          ValueError: There is no such format, or the file does not act as the policy
            does; then it is deleted. Or there is an older export without `overwrite`,
            or a file of another kind.
        """
        from tfrl.policies.exporting import formats  # Its import takes long.

        return formats.export(
            self.policy,
            path,
            format,
            self.world.fit.original_tensors,
            overwrite=overwrite,
        )

    def save(self, folder: str | pathlib.Path, *, overwrite: bool = False) -> None:
        """Saves everything that `tfrl.load` needs, and the policy as a SavedModel.

        Args:
          folder: The folder; what `save` wrote there for the same run is replaced.
          overwrite: Whether to replace the outputs of another run, too.

        Raises:
          CheckpointError: The weights are not finite; nothing was saved or removed.
          ValueError: A setting is a schedule, which config.json cannot hold.
          RunDirectoryError: The folder holds something else than a run of an algorithm,
            or another run without `overwrite`.
        """
        import tensorflow as tf  # Not at the top: --help does not wait for it.

        from tfrl.savers import whole_checkpoints

        path = pathlib.Path(folder)
        whole_checkpoints.check_finite(
            tf.train.Checkpoint(**self.loop.checkpoint_items(False)),
            f"folder {str(path)!r}: nothing was saved, because these variables hold",
        )
        is_own = self.logdir is not None and paths.is_same(path, self.logdir)
        replaces = not is_own and run_folders.holds_run(path)
        if replaces and not overwrite:
            self.open_folder(path)  # Raises the error for other settings.
            run_folders.check_no_training(path)
        directory = self.open_folder(path, overwrite=replaces)
        self.run(directory, evaluates=False).save()


def _whole(name: str, value: Any) -> int | None:
    """Returns a length as an integer; raises an error for another value."""
    length: int | None = number_checks.as_integer(value)
    number_checks.check_integer(
        name, length, 1, remedy="give a number of steps", optional=True
    )
    return length
