"""The base of the algorithms: an agent with its networks, replay, loop and settings.

Each class of this package is one algorithm. Python programs use it as `tfrl.PPO`;
scripts, score tables, sweeps and distributed runs make the same parts with it.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tfrl import agents, environments, policies, train
from tfrl import eval as evaluation
from tfrl.algorithms import (
    learning,
    presets,
    recordings,
    registry,
    run_folders,
    spaces,
    worlds,
)
from tfrl.environments.boundary import conversion
from tfrl.reports import evidence as evidence_lib
from tfrl.reports import health as health_lib
from tfrl.reports import run_files
from tfrl.system import quiet
from tfrl.train.runs import run_length

if TYPE_CHECKING:
    from tfrl.policies.acting import prediction


@dataclasses.dataclass(frozen=True)
class OwnParts:
    """The parts of an algorithm that a program makes itself.

    Attributes:
      networks: A dict of networks by the agent's arguments, such as `q_network`, or the
        only network. Each may be a function of the observation spec and the action
        spec.
      agent: A subclass of the algorithm's agent, or a function with its arguments.
      arguments: Further arguments of the agent, such as `exploration`.
      replay_buffer: A buffer, or a function of the agent's `collect_data_spec` and the
        number of environments that makes one.
    """

    networks: Any = None
    agent: Callable[..., agents.TFAgent] | None = None
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    replay_buffer: Any = None

    def __str__(self) -> str:
        """Returns the names of the parts, such as "agent=MyAgent"; "" without any."""
        parts = {
            "network": self.networks,
            "agent": self.agent,
            "replay_buffer": self.replay_buffer,
            **self.arguments,
        }
        return ", ".join(
            f"{name}={_name_of(part)}"
            for name, part in parts.items()
            if part is not None
        )


class Algorithm:
    """An algorithm with its settings, which trains an agent in an environment.

    ```python
    ppo = tfrl.PPO("CartPole-v1", seed=0).learn(50_000)
    ppo.evaluate(20).mean
    action, state = ppo.predict(observation)
    ppo.save("cart_pole")
    ppo = tfrl.load("cart_pole").learn(50_000)
    ```

    Attributes:
      Settings: The class of its settings.
      name: Its name on the command line and in the names of folders.
      title: Its name for readers.
      agent_name: The name of its agent's class in `tfrl.agents`.
      environment_name: The environment that it trains in by default.
      relative: The algorithm whose settings for an environment it takes, too.
      actions: The kind of actions that it chooses; see `spaces`.
      overrides: Settings of the class that hold for every environment.
      is_offline: Whether it learns from recorded data, and steps no environment.
      supports_sweep: Whether one program can train many runs of it; see `train.sweep`.
      settings: The settings, an instance of `Settings`.
    """

    Settings: ClassVar[Any]
    name: ClassVar[str]
    title: ClassVar[str]
    agent_name: ClassVar[str]
    environment_name: ClassVar[str] = "CartPole-v1"
    relative: ClassVar[str | None] = None
    actions: ClassVar[spaces.Kind] = "any"
    overrides: ClassVar[Mapping[str, Any]] = {}
    is_offline: ClassVar[bool] = False
    supports_sweep: ClassVar[bool] = True

    def __init__(
        self,
        environment: Any = None,
        *,
        evaluation_environment: Any = None,
        logdir: str | pathlib.Path | None = None,
        initial_run: str | pathlib.Path | None = None,
        network: Any = None,
        exploration: Callable[..., Any] | None = None,
        replay_buffer: Any = None,
        agent: Callable[..., agents.TFAgent] | None = None,
        agent_arguments: Mapping[str, Any] | None = None,
        environment_name: str = "",
        preset: str = "",
        settings: Any = None,
        **values: Any,
    ) -> None:
        """Creates the algorithm; the first use of a part makes the parts.

        Args:
          environment: Where to train: the name of an environment, a function that makes
            one, or an environment; see `worlds.World`. None for `environment_name`.
          evaluation_environment: The same, to evaluate and film in.
          logdir: The folder of the run: `learn` writes all outputs there, and resumes.
            None writes no file.
          initial_run: The folder of a run, to begin with its last weights; see
            `train.load_weights`. A run that resumes in `logdir` has its own.
          network: A network, or a function that makes one from the spec of its input
            and the spec of the actions. For an agent with several networks, a dict of
            some of them, by the names of the agent's arguments; the algorithm makes the
            others.
          exploration: A function that makes the collect policy from the agent's policy,
            for agents that take `exploration`.
          replay_buffer: A buffer, or a function of the agent's `collect_data_spec` and
            the number of environments that makes one.
          agent: A subclass of the algorithm's agent, or a function with its arguments.
          agent_arguments: Further arguments of the agent.
          environment_name: The environment's name, if `environment` is not a name.
          preset: The name of a preset; empty for the environment's preset, if there is
            one. `tfrl list settings` lists the presets.
          settings: All settings; None takes the preset's settings, changed by `values`.
          **values: Settings, see `Settings`.

        Raises:
          TypeError: There is no such setting, or `environment` is not an environment.
          ValueError: A setting is out of its range, or the preset is for another
            algorithm, or the run is to begin with the weights in its own folder.
        """
        if environment is None:
            environment = self.environment_name
        if settings is None:
            probe = worlds.Probe(environment)
            settings = self._settings_for(probe, environment_name, preset, values)
            environment = probe.environment
        self.settings = settings
        self.world = worlds.World(
            environment,
            settings,
            worlds.ActionFit(self.action_kind, self.title, clip=self.actions == "any"),
            evaluation_environment,
            environment_name,
        )
        self.logdir = None if logdir is None else pathlib.Path(logdir)
        self.initial_run = None if initial_run is None else str(initial_run)
        if self.logdir and run_folders.is_same(self.logdir, self.initial_run):
            raise ValueError(
                f"initial_run: got {self.initial_run!r}, which is the folder of this "
                "run, too; give another logdir."
            )
        arguments = dict(agent_arguments or {})
        if exploration is not None:
            arguments["exploration"] = exploration
        self.own = OwnParts(network, agent, arguments, replay_buffer)
        self.num_iterations: int = settings.num_iterations
        self._environment: environments.TFEnvironment | None = None
        self._loop: train.TrainingLoop | None = None
        # Measurements by calls of `learn` without files; see `health`.
        self.rows: list[dict[str, Any]] = []
        # The length that the calls of `learn` so far have together.
        self.reached: run_length.RunLength | None = None

    @classmethod
    def _settings_for(
        cls,
        probe: worlds.Probe,
        name: str,
        preset_name: str,
        values: Mapping[str, Any],
    ) -> Any:
        """Returns the settings for an environment, and says where they are from.

        The size of an environment that a program has made sets `num_envs`. `name` is
        the name of an environment without one.
        """
        given = probe.environment
        name = given if isinstance(given, str) else name
        known = cls.Settings.texts()
        for each in values:
            if each not in known:
                near = difflib.get_close_matches(each, known, n=1)
                raise TypeError(
                    f"{cls.__name__}: got an unknown setting {each!r}"
                    + (f"; did you mean {near[0]}?" if near else ".")
                )
        preset = (
            presets.named(preset_name)
            if preset_name
            else registry.find_preset(cls, name, probe.find_kind)
        )
        if preset is not None:
            if preset_name and preset.algorithm not in (cls.name, cls.relative):
                raise ValueError(
                    f"preset: got {preset_name!r}, settings of {preset.algorithm!r}, "
                    f"expected a preset of {cls.name!r}; `tfrl list settings "
                    f"{cls.name}` lists them."
                )
            print(
                f"{cls.title} on {name or 'this environment'}: {preset.text(name)}.",
                file=sys.stderr,
            )
        made = {**({} if preset is None else preset.settings), **cls.overrides}
        followers = cls.Settings.followers(made, values)
        settings = cls.Settings.of({**made, **followers, **values})
        num_envs = conversion.batch_size_of(given)
        if num_envs is None or "num_envs" not in known:
            return settings
        if values.get("num_envs", num_envs) != num_envs:
            raise ValueError(
                f"num_envs: got {values['num_envs']} for an environment that is a "
                f"batch of {num_envs}; leave it out, or give a function that makes one."
            )
        return dataclasses.replace(settings, **{**settings.fitted(num_envs), **values})

    # What a subclass says.

    def make_networks(self) -> dict[str, Any]:
        """Makes the networks, a dict by the agent's arguments."""
        raise NotImplementedError

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments except for its specs and networks."""
        raise NotImplementedError

    def make_loop(self, agent: Any) -> train.TrainingLoop:
        """Makes the loop that trains the agent, with its buffer."""
        raise NotImplementedError

    @property
    def action_kind(self) -> spaces.Kind:
        """The kind of actions that the algorithm chooses with its settings."""
        return self.actions

    def agent_class(self) -> Callable[..., agents.TFAgent]:
        """Returns the agent's class."""
        made: Callable[..., agents.TFAgent] = getattr(agents, self.agent_name)
        return made

    # The parts.

    @property
    def environment(self) -> environments.TFEnvironment:
        """The environment to train in."""
        if self._environment is None:
            self._environment = self.world.make_training()
        return self._environment

    @property
    def observation_spec(self) -> Any:
        """The spec of the networks' input: an observation, without a mask."""
        return policies.utils.network_observation_spec(
            self.environment.observation_spec(),
            self.own.arguments.get("observation_and_action_constraint_splitter"),
        )

    @property
    def loop(self) -> train.TrainingLoop:
        """The training loop."""
        if self._loop is None:
            self.build()
        assert self._loop is not None
        return self._loop

    @property
    def agent(self) -> Any:
        """The agent."""
        return self.loop.agent

    @property
    def policy(self) -> Any:
        """The greedy policy."""
        return self.agent.policy

    @property
    def replay_buffer(self) -> Any:
        """The replay buffer; None if the algorithm has none."""
        return self.loop.checkpoint_items().get("replay_buffer")

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

    def make_agent(self) -> Any:
        """Makes an agent.

        Raises:
          ValueError: The algorithm does not choose the environment's actions, or a
            network of the program matches no argument of the agent.
        """
        quiet.take_onednn_notice()
        environment, own = self.environment, self.own
        specs = self.observation_spec, environment.action_spec()
        spaces.check_actions(
            specs[1],
            self.action_kind,
            self.title,
            self.world.name,
            has_bins="num_action_bins" in self.settings.texts(),
        )
        networks = self.make_networks()
        for name, network in self._own_networks(networks).items():
            networks[name] = network(*specs) if _is_function(network) else network
        return (own.agent or self.agent_class())(
            environment.time_step_spec(),
            specs[1],
            **networks,
            **{**self.agent_arguments(), **own.arguments},
        )

    def _own_networks(self, networks: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the program's networks by the agent's arguments."""
        given = self.own.networks
        if given is None:
            return {}
        if not isinstance(given, Mapping) and len(networks) == 1:
            return dict.fromkeys(networks, given)
        names = ", ".join(networks)
        if not isinstance(given, Mapping):
            raise ValueError(
                f"network: got a {type(given).__name__}, but {self.title} has several; "
                f"give a dict with some of {names}."
            )
        unknown = sorted(given.keys() - networks.keys())
        if unknown:
            raise ValueError(
                f"network: got {unknown[0]!r}, expected some of {names}, the networks "
                f"of {self.title}."
            )
        return dict(given)

    def build(
        self,
        num_environment_steps: int | None = None,
        prepare: Callable[[Any], None] | None = None,
    ) -> train.TrainingLoop:
        """Makes the agent, with its weights, and the loop that trains it.

        The first `learn` does this. Call it to use the parts before `learn`.

        Args:
          num_environment_steps: The total number of steps, which schedules span; None
            for the settings' `num_iterations`.
          prepare: Called with the agent when it has its weights, such as to load
            others.

        Raises:
          RuntimeError: The parts are made already.
          FileNotFoundError: `initial_run` has no checkpoint.
          CheckpointError: Its weights belong to other networks.
        """
        if self._loop is not None:
            raise RuntimeError(
                f"{self.title}: its parts are made already; make another "
                f"{type(self).__name__} for a run of another length."
            )
        if num_environment_steps is not None:
            values = self.settings.to_dict()
            self.num_iterations = least_iterations(values, num_environment_steps)
        self.world.describe(self.observation_spec, self.environment.action_spec())
        with train.device_scope(self.settings.device):
            agent = self.make_agent()
            agent.initialize()
            if self.initial_run and not run_folders.has_checkpoint(self.logdir):
                train.load_weights(agent, self.initial_run)
            if prepare is not None:
                prepare(agent)
        self._loop = self.make_loop(agent)
        return self._loop

    def refuse_replay(self) -> None:
        """Raises a ValueError if an algorithm without replay gets a buffer."""
        if self.own.replay_buffer is not None:
            raise ValueError(
                f"replay_buffer: got one, but {self.title} learns from rollouts, "
                "without replay; leave it out."
            )

    def own_buffer(self, agent: agents.TFAgent) -> Any:
        """Returns the buffer that the user's program has made, if any."""
        buffer = self.own.replay_buffer
        if buffer is not None and not hasattr(buffer, "add_batch"):
            return buffer(agent.collect_data_spec, self.environment.batch_size)
        return buffer

    # Training and after.

    def learn(
        self,
        num_environment_steps: int | None = None,
        *,
        total: int | None = None,
        callbacks: Sequence[train.Callback] = (),
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
          progress: Whether to show the progress; warnings are shown in any case.
          continue_stopped: Whether to continue if a callback stopped this call when an
            earlier program trained in `logdir`.
          overwrite: Whether to remove the outputs of an earlier run in `logdir` first.

        Raises:
          ValueError: A length is not positive, or there is no `logdir` to overwrite.
          KeyboardInterrupt: Ctrl-C was pressed; a run with a `logdir` has saved a
            checkpoint.
          SystemExit: SIGTERM or SIGHUP came, with status 143 or 129; a run with a
            `logdir` has saved a checkpoint.
          Exception: An exception of the environment or of a callback.
        """
        if overwrite:
            self._remove_outputs()
        if self._loop is None:
            self.build(total or num_environment_steps)
        self.reached = self._longer(num_environment_steps)
        if self.logdir is None:
            learning.without_files(
                self, self.reached, callbacks, shows_progress=progress
            )
        else:
            self.reached = learning.in_folder(
                self,
                self.logdir,
                self.reached,
                callbacks,
                shows_progress=progress,
                continue_stopped=continue_stopped,
            )
        return self

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
            more = more or self.settings.num_iterations

        def of(total: int) -> run_length.RunLength:
            numbers = (total, None) if by_iterations else (None, total)
            return run_length.RunLength(*numbers)

        info, before = self.loop.info(), self.reached
        done = of(0).done(info)
        if before is not None and before.unit == of(0).unit and before.is_reached(info):
            done = before.total
        length = of(done + more)
        length.check(self.loop)
        return length

    def evaluate(
        self, num_episodes: int = 10, *, greedy: bool = True, seed: int = 0
    ) -> evaluation.EvaluationResult:
        """Plays episodes and returns their returns and lengths.

        Args:
          num_episodes: The number of episodes, which run side by side.
          greedy: Whether to take the most probable actions instead of sampled ones.
          seed: The seed of the episodes.

        Raises:
          ValueError: There is no environment to evaluate in; see `worlds.World`.
        """
        environment = self.world.make_evaluation(num_episodes, seed)
        policy = self.policy if greedy else self.agent.collect_policy
        return evaluation.Evaluator(environment, policy, num_episodes, seed).run()

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

    def evidence(self) -> evidence_lib.Evidence:
        """Returns the measurements of the run so far, for `health` and reports."""
        rows = self.rows
        if self.logdir is not None:
            rows = run_files.read_rows(self.logdir / "diagnostics.jsonl")
        length = self.reached or run_length.RunLength(self.num_iterations, None)
        return evidence_lib.Evidence(rows, learning.config_of(self, length))

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
    ) -> int:
        """Writes the frames of whole episodes to a file, to learn from offline.

        Give the file to `tfrl.IQL(data=path)`, for example; see
        `datasets.load_recordings`.

        Args:
          path: The TFRecord file; an older one is replaced when all is recorded.
          num_episodes: The number of episodes.
          greedy: Whether to take the most probable actions instead of sampled ones.
          seed: The seed of the episodes.

        Returns:
          The number of frames.

        Raises:
          ValueError: There is no environment to play in; see `worlds.World`.
        """
        environment = self.world.make_evaluation(1, seed)
        policy = self.policy if greedy else self.agent.collect_policy
        return recordings.record(environment, policy, num_episodes, path, seed)

    def save(self, folder: str | pathlib.Path) -> None:
        """Saves everything that `tfrl.load` needs, and the policy as a SavedModel.

        Args:
          folder: The folder; the outputs of another run in it are replaced.
        """
        path = pathlib.Path(folder)
        overwrite = self.logdir is None or path.resolve() != self.logdir.resolve()
        length = self.reached or run_length.RunLength(self.num_iterations, None)
        learning.with_files(self, path, length, films=False, overwrite=overwrite).save()


def _is_function(network: Any) -> bool:
    from tfrl.networks import network as network_lib

    return callable(network) and not isinstance(network, network_lib.Network)


def least_iterations(values: Mapping[str, Any], num_environment_steps: int) -> int:
    """Returns the smallest number of iterations that reach a run's number of steps.

    A learning rate that decays until the end depends on this number.

    Args:
      values: The settings.
      num_environment_steps: The steps.
    """
    each = values.get("collect_steps_per_iteration") or values.get("sequence_length")
    if not each:
        return int(values["num_iterations"])
    each *= values.get("num_envs", 1)
    left = num_environment_steps - values.get("initial_collect_steps", 0)
    return max(-(-left // each), 1)


def _name_of(part: Any) -> str:
    """Returns the name of a function, a class or an object's class; or a number."""
    if isinstance(part, bool | int | float | str):
        return repr(part)
    if isinstance(part, dict):
        return "{" + ", ".join(f"{k}: {_name_of(v)}" for k, v in part.items()) + "}"
    name = getattr(getattr(part, "func", part), "__name__", None)
    return str(name or type(part).__name__)
