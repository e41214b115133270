"""The base of the algorithms: an agent with its networks, replay, loop and settings.

Each class of this package is one algorithm, whose fields are its settings. Python
programs use it as `tfrl.PPO`; the command, score tables, sweeps and distributed runs
make the same parts with it.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tfrl import agents, datasets, environments, garbage, policies, startup, train
from tfrl import eval as evaluation
from tfrl.algorithms import (
    given_parts,
    learning,
    other_words,
    presets,
    registry,
    run_folders,
    run_settings,
    spaces,
    worlds,
)
from tfrl.algorithms import recipe as recipe_lib
from tfrl.algorithms import settings as settings_lib
from tfrl.algorithms.settings import part
from tfrl.environments import suites
from tfrl.environments.boundary import conversion
from tfrl.reports import evidence as evidence_lib
from tfrl.reports import health as health_lib
from tfrl.system import interrupts, log, quiet
from tfrl.train.runs import run_files, run_length
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.policies.acting import prediction

# The agents' argument for masks.
_SPLITTER = "observation_and_action_constraint_splitter"


class Algorithm(settings_lib.Settings):
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
      **values: Settings, which go before those of the preset.

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
      preset: The preset whose settings it takes; None if there is none.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    agent_name: ClassVar[str]
    environment_name: ClassVar[str] = "CartPole-v1"
    relative: ClassVar[str | None] = None
    actions: ClassVar[spaces.Kind] = "any"
    is_offline: ClassVar[bool] = False
    takes_masks: ClassVar[bool] = False

    # What the constructor takes beside settings; `alias` is the argument's name.
    own_environment: Any = part(alias="environment", default=None, kw_only=False)
    own_evaluation: Any = part(alias="evaluation_environment", default=None)
    own_network: Any = part(alias="network", default=None)
    own_encoder: Any = part(alias="encoder", default=None)
    own_exploration: Callable[..., Any] | None = part(alias="exploration", default=None)
    own_replay_buffer: Any = part(alias="replay_buffer", default=None)
    own_agent: Callable[..., agents.TFAgent] | None = part(alias="agent", default=None)
    own_arguments: Mapping[str, Any] | None = part(
        alias="agent_arguments", default=None
    )
    own_name: str = part(alias="environment_name", default="")
    initial_run: str | pathlib.Path | None = part(alias="initial_run", default=None)
    given_logdir: str | pathlib.Path | None = part(alias="logdir", default=None)
    given_preset: str = part(alias="preset", default="")
    given_settings: Mapping[str, Any] | None = part(alias="settings", default=None)

    if not TYPE_CHECKING:  # Type checkers know the arguments by the fields.
        load = other_words.Loading()

        def __init__(self, *environment, **given):
            """Creates the algorithm; see the class for the arguments."""
            other_words.refuse_policy(type(self).__name__, environment)
            if environment:
                given["environment"] = environment[0]
            if given.get("environment", "") is None:
                raise TypeError(
                    f"{type(self).__name__}: got None as the environment; give its "
                    "name, a function that makes one, or an environment."
                )
            self._create(given)

        def __getattr__(self, name):
            """Raises the error for a missing attribute."""
            if name in other_words.METHODS:
                text = other_words.method_elsewhere(type(self).__name__, name)
                raise AttributeError(text)
            return object.__getattribute__(self, name)  # Raises Python's.

        def __setattr__(self, name, value):
            """Sets an attribute; raises an AttributeError for one that there is not."""
            if "_length" in vars(self):  # The last one that the constructor sets.
                self._check_attribute(name, value)
            super().__setattr__(name, value)

    def _create(self, given: Mapping[str, Any]) -> None:
        """Stores the arguments of the constructor."""
        self._environment: environments.TFEnvironment | None = None
        self._loop: train.TrainingLoop | None = None
        self.preset: presets.Preset | None = None
        fields = {
            name: x.name
            for x in self._arguments.values()
            if not self._is_setting(name := x.metadata["argument"], given)
        }
        for name in given.keys() & fields.keys():
            setattr(self, fields[name], given[name])
        values = {name: x for name, x in given.items() if name not in fields}
        # Objects in place of texts, by the name of the setting.
        self.own_objects = {
            name: values.pop(name)
            for name, x in self.setting_fields().items()
            if x.metadata["takes_objects"]
            and not isinstance(values.get(name, ""), str | os.PathLike)
        }
        environment = self.own_environment
        probe = worlds.Probe(
            self.environment_name if environment is None else environment
        )
        made = self.given_settings
        if made is None:
            made = self._settings_for(probe, values)
        self.set_all({**made, **values})
        for sentence in self.idle(values):
            log.info(f"{self.title}: {sentence}.")
        self.world = worlds.World(
            probe.environment,
            self,
            worlds.ActionFit(self.action_kind, self.title, clip=self.actions == "any"),
            self.own_evaluation,
            self.own_name,
        )
        self.write_to(self.given_logdir)
        # The iterations that schedules span; None for those of the run.
        self._scheduled: int | None = None
        # Measurements by calls of `learn` without files; see `health`.
        self.rows: list[dict[str, Any]] = []
        # The length of the run, and of the calls of `learn` so far together.
        self._length: run_length.RunLength | None = None

    def _check_attribute(self, name: str, value: Any) -> None:
        """Raises an AttributeError for an argument, or for no setting or attribute."""
        arguments = {x.metadata["argument"] for x in self._arguments.values()}
        if name in arguments - {*self.setting_fields(), *self.__dataclass_fields__}:
            raise AttributeError(
                f"{name}: an argument of the constructor, which stays as it is; make "
                f"another one: {type(self).__name__}({name}=...)."
            )
        is_there = name in vars(self) or hasattr(type(self), name)
        # A program's subclass may keep what it likes.
        is_ours = type(self).__module__.startswith("tfrl.")
        if is_ours and not (name.startswith("_") or is_there):
            raise AttributeError(self.text_of_unknown(name, value))

    def _is_setting(self, name: str, given: Mapping[str, Any]) -> bool:
        """Whether an argument is the text of the setting of the same name."""
        return name in self.setting_fields() and isinstance(given.get(name), str)

    def _settings_for(
        self, probe: worlds.Probe, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Returns the preset's settings, and logs where they are from.

        The size of an environment that a program has made sets `num_envs`.

        Args:
          probe: The environment.
          values: The settings that the program gives.
        """
        given = probe.environment
        name = given if isinstance(given, str) else self.own_name
        preset = self.preset = registry.preset_for(
            type(self), name, self.given_preset, probe.find_kind
        )
        made = {} if preset is None else registry.settings_of(type(self), preset)
        text = (
            f"default settings, for environments such as {self.environment_name}"
            if preset is None
            else preset.text(name)
        )
        log.info(f"{self.title} on {name or 'this environment'}: {text}.")
        num_envs = conversion.batch_size_of(given)
        if num_envs is None or "num_envs" not in self.setting_fields():
            return made
        if values.get("num_envs", num_envs) != num_envs:
            raise ValueError(
                f"num_envs: got {values['num_envs']} for an environment that is a "
                f"batch of {num_envs}; leave it out, or give a function that makes one."
            )
        return {**made, **self.fitted({**self.defaults(), **made, **values}, num_envs)}

    def is_made(self) -> bool:
        """Whether parts are made, so that settings stay as they are."""
        return self._environment is not None or self._loop is not None

    @property
    def logdir(self) -> pathlib.Path | None:
        """The folder of the run; None if it writes no file."""
        return None if self.given_logdir is None else pathlib.Path(self.given_logdir)

    def write_to(self, logdir: str | pathlib.Path | None) -> None:
        """Sets the folder of the run.

        Raises:
          ValueError: The run is to begin with the weights in this folder.
        """
        self.given_logdir = logdir
        if self.logdir and run_folders.is_same(self.logdir, self.initial_run):
            raise ValueError(
                f"initial_run: got {str(self.initial_run)!r}, which is the folder of "
                "this run, too; give another logdir."
            )

    @property
    def schedule_iterations(self) -> int:
        """The iterations that schedules span, such as a learning rate that falls."""
        return self._scheduled or self.num_iterations

    @property
    def updates_per_iteration(self) -> int:
        """The updates of an iteration."""
        return 1

    @property
    def num_updates(self) -> int:
        """The updates of the run, which schedules span."""
        return self.schedule_iterations * self.updates_per_iteration

    def schedule_over(self, num_iterations: int | None) -> None:
        """Lets schedules span another number of iterations; None for the run's."""
        self._scheduled = num_iterations

    @property
    def length(self) -> run_length.RunLength:
        """The length of the run, which calls of `learn` extend."""
        return self._length or run_length.RunLength(self.schedule_iterations, None)

    @length.setter
    def length(self, length: run_length.RunLength) -> None:
        self._length = length

    def train_for(self, num_environment_steps: int) -> None:
        """Lets the run, and its schedules, span a number of environment steps."""
        self.schedule_over(self.least_iterations(num_environment_steps))
        self.length = run_length.RunLength(None, num_environment_steps)

    # What a subclass says.

    def make_networks(self) -> dict[str, Any]:
        """Makes the networks, a dict by the agent's arguments."""
        raise NotImplementedError

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments except for its specs and networks."""
        return {"seed": self.seed}

    def make_loop(self, agent: Any) -> train.TrainingLoop:
        """Makes the loop that trains the agent, with its buffer."""
        raise NotImplementedError

    def make_view(self) -> train.RunView | None:
        """Returns what measures further columns of a run's log; None for nothing."""
        return None

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
            self.world.fit.kind = self.action_kind
            self._environment = self.world.make_training()
        return self._environment

    @property
    def observation_spec(self) -> Any:
        """The spec of the networks' input: an observation, without a mask."""
        return policies.utils.network_observation_spec(
            self.environment.observation_spec(),
            self.agent_keywords().get(_SPLITTER),
        )

    @property
    def has_mask(self) -> bool:
        """Whether the environment's observations hold a mask of actions, by its name.

        A splitter of the program's own goes before it.
        """
        made = self.environment
        action_spec = self.world.fit.original_spec or made.action_spec()
        return _SPLITTER not in (self.own_arguments or {}) and spaces.has_mask(
            made.observation_spec(), action_spec
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
        if not startup.is_plain():
            quiet.take_onednn_notice()
        environment = self.environment
        specs = self.observation_spec, environment.action_spec()
        spaces.check_actions(
            specs[1],
            self.action_kind,
            self.title,
            self.world.name,
            has_bins="num_action_bins" in self.setting_fields(),
            is_offline=self.is_offline,
        )
        if self.has_mask and not self.takes_masks:
            instead = "" if self.is_offline else "train PPO or DQN, or "
            raise ValueError(
                f"environment: got one whose observation has masks of actions, "
                f"{spaces.MASK!r}, but {self.title} takes none; {instead}rename the "
                "part of the observation, which is then seen as numbers."
            )
        networks = self.make_networks()
        own_critics = {}
        for name, given in self._own_networks(networks).items():
            is_critic = name.startswith("critic") and self.action_kind != "discrete"
            taken = specs if is_critic else specs[0]
            networks[name] = given_parts.network_of(given, *specs, taken, self.seed)
            own_critics.update({name: networks[name]} if is_critic else {})
        make = self.own_agent or self.agent_class()
        keywords = {**self.agent_arguments(), **self.agent_keywords()}
        with (
            given_parts.naming_argument(self.own_arguments or {}, make),
            given_parts.naming_critic(own_critics, specs),
        ):
            return make(environment.time_step_spec(), specs[1], **networks, **keywords)

    def agent_keywords(self) -> dict[str, Any]:
        """Returns the agent's arguments that the program gives."""
        exploration = self.own_exploration
        if exploration is not None and not callable(exploration):
            raise TypeError(
                f"exploration: got {exploration!r}, expected a function that makes the "
                "collect policy from the agent's policy, exploration=lambda policy: ..."
            )
        given = {} if exploration is None else {"exploration": exploration}
        masked = {_SPLITTER: spaces.split_mask} if self.has_mask else {}
        return {**masked, **(self.own_arguments or {}), **given}

    def own_parts(self) -> str:
        """Returns the names of the program's parts, such as "agent=MyAgent"."""
        given = {
            "network": self.own_network,
            "encoder": self.own_encoder,
            "agent": self.own_agent,
            "replay_buffer": self.own_replay_buffer,
            **self.own_objects,
            "exploration": self.own_exploration,
            **(self.own_arguments or {}),
        }
        return ", ".join(
            f"{name}={given_parts.name_of(each)}"
            for name, each in given.items()
            if each is not None
        )

    def _own_networks(self, networks: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the program's networks by the agent's arguments."""
        given = self.own_network
        if given is None:
            return {}
        if not isinstance(given, Mapping) and len(networks) == 1:
            return dict.fromkeys(networks, given)
        if not networks:
            raise ValueError(
                f"network: got one, but {self.title} has no network; leave it out."
            )
        names = ", ".join(networks)
        if not isinstance(given, Mapping):
            raise ValueError(
                f"network: got a {type(given).__name__}, but {self.title} has several; "
                f"give a dict with some of {names}."
            )
        unknown = sorted(given.keys() - networks.keys())
        if unknown:
            near = difflib.get_close_matches(unknown[0], networks, n=1)
            raise ValueError(
                f"network: got {unknown[0]!r}, expected some of {names}, the networks "
                f"of {self.title}" + (f"; did you mean {near[0]}?" if near else ".")
            )
        return dict(given)

    def check_environment(self) -> None:
        """Checks an environment that is given by its name, without TensorFlow.

        Raises:
          ValueError: There is none, or the algorithm does not choose its actions.
        """
        given = self.own_environment
        name = self.environment_name if given is None else given
        if not isinstance(name, str):
            return
        space = suites.find_action_space(name)
        if not self.settings.get("num_action_bins"):
            spaces.check_space(space, type(self), name)

    @garbage.uncollected()
    def build(self, num_environment_steps: int | None = None) -> train.TrainingLoop:
        """Makes the agent, with its weights, and the loop that trains it.

        The first `learn` does this. Call it to use the parts before `learn`.

        Args:
          num_environment_steps: The total number of steps, which schedules span; None
            for `num_iterations`.

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
        self.check_environment()
        if num_environment_steps is not None:
            self._scheduled = self.least_iterations(num_environment_steps)
            if self.initial_steps >= num_environment_steps:
                log.info(
                    f"initial_collect_steps: {self.initial_steps:,}, so all "
                    f"{num_environment_steps:,} steps are taken before the first "
                    "iteration; set fewer, or train for longer."
                )
        has_own = self.own_encoder is not None or self.own_network is not None
        if not has_own and "conv_layer_params" in self.setting_fields():
            specs = self.observation_spec, self.environment.action_spec()
            self.world.describe(*specs, has_mask=self.has_mask)
        agent = self.make_initialized_agent()
        if self.initial_run and not run_folders.has_checkpoint(self.logdir):
            path = train.load_weights(agent, self.initial_run)
            log.info(f"Initial weights: {path}")
        self._loop = self.make_loop(agent)
        return self._loop

    def make_initialized_agent(self) -> Any:
        """Makes an agent with its initial weights, on the device of the settings."""
        with train.device_scope(self.device):
            agent = self.make_agent()
            agent.initialize()
        return agent

    @property
    def steps_per_iteration(self) -> int:
        """The environment steps of an iteration; 0 if their number is not fixed."""
        return 0

    def least_iterations(self, num_environment_steps: int) -> int:
        """Returns the smallest number of iterations that reach a number of steps.

        A learning rate that falls until the end depends on this number.

        Args:
          num_environment_steps: The steps.
        """
        each = self.steps_per_iteration
        if not each:
            return self.num_iterations
        left = num_environment_steps - self.initial_steps
        return max(-(-left // each), 1)

    @property
    def initial_steps(self) -> int:
        """The environment steps before the first iteration."""
        return 0

    def own_buffer(self, agent: agents.TFAgent) -> Any:
        """Returns the buffer that the user's program has made, if any."""
        buffer = self.own_replay_buffer
        if buffer is not None and not hasattr(buffer, "add_batch"):
            return buffer(agent.collect_data_spec, self.environment.batch_size)
        return buffer

    # Training and after.

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
          **options: Arguments of `run_settings.make`, and further ones of `train.Run`.
        """
        if self._loop is None:
            self.build()
        options = {"view": self.make_view(), **options}
        return train.Run(
            self.loop,
            directory,
            **dataclasses.asdict(self.length),
            callbacks=callbacks,
            rows=self.rows,
            **run_settings.make(self, self.agent, **options),
        )

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
        is_own = self.logdir is not None and run_folders.is_same(path, self.logdir)
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
