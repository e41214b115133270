"""Makes an agent, with its networks, its environment and its loop, by settings."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import operator
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from tfrl import agents, environments, garbage, policies, startup, train
from tfrl import networks as networks_lib
from tfrl.algorithms import given_parts, other_words, presets, registry, spaces, worlds
from tfrl.algorithms import settings as settings_lib
from tfrl.algorithms.settings import part
from tfrl.environments import suites
from tfrl.environments.boundary import conversion
from tfrl.savers import checkpoint_names
from tfrl.system import log, paths, quiet
from tfrl.train.runs import run_length

_NUM_OPPONENTS = 8  # In self-play: the newest policy, and earlier ones.
# The agents' argument for masks.
_SPLITTER = "observation_and_action_constraint_splitter"


class Builder(settings_lib.Settings):
    """Makes the parts of an algorithm by its settings, and by a program's own parts.

    `algorithm.Algorithm` explains the arguments, and adds what programs do with an
    algorithm: to learn, evaluate, predict, save. This class has what a subclass says.

    Raises:
      TypeError: There is no such setting, or `environment` is not an environment.
      ValueError: A setting is out of its range, or the preset is for another algorithm,
        or the run is to begin with the weights in its own folder.
    """

    # What the algorithm is called, and what it can do; see `algorithm.Algorithm`.
    name: ClassVar[str]
    title: ClassVar[str]
    agent_name: ClassVar[str]
    environment_name: ClassVar[str] = "CartPole-v1"
    relative: ClassVar[str | None] = None
    actions: ClassVar[spaces.Kind] = "any"
    is_offline: ClassVar[bool] = False
    takes_masks: ClassVar[bool] = False
    has_own_critics: ClassVar[bool] = False

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

    @classmethod
    def run_fields(cls) -> dict[str, dataclasses.Field[Any]]:
        """Returns the declarations of settings, and of all environments' options."""
        found: dict[str, dataclasses.Field[Any]] = {}
        for name, each in suites.options().items():
            found[name] = settings_lib.field(
                each.text, each.check, default=each.default
            )
            found[name].type = type(each.default).__name__
        return {**found, **cls.setting_fields()}

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
        every, own = {**made, **values}, self.setting_fields()
        if isinstance(environment, str) and every.keys() - self.run_fields().keys():
            suites.find(environment)  # Its module may bring a suite with options.
        options = every.keys() & self.run_fields().keys() - own.keys()
        self.options = worlds.chosen_options({name: every[name] for name in options})
        self.set_all({name: x for name, x in every.items() if name not in options})
        for sentence in self.idle(name for name in values if name in own):
            log.info(f"{self.title}: {sentence}.")
        self.world = worlds.World(
            probe.environment,
            self,
            worlds.ActionFit(
                self.action_kind,
                self.title,
                clip=self.actions == "any",
                is_offline=self.is_offline,
            ),
            self.own_evaluation,
            self.own_name,
        )
        if self.logdir and paths.is_same(self.logdir, self.initial_run):
            raise ValueError(
                f"initial_run: got {str(self.initial_run)!r}, which is the folder of "
                "this run, too; give another logdir."
            )
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

        The size of an environment that a program has made sets `num_envs`. Where the
        members of a batch belong together, `num_envs` becomes a multiple of them.

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
        if "num_envs" not in self.setting_fields():
            return made
        usual = {**self.defaults(), **made, **values}
        num_envs = probe.num_envs(usual["num_envs"])
        if num_envs is None:
            return made
        is_made = conversion.is_environment(given)
        if is_made and values.get("num_envs", num_envs) != num_envs:
            raise ValueError(
                f"num_envs: got {values['num_envs']} for an environment that is a "
                f"batch of {num_envs}; leave it out, or give a function that makes one."
            )
        return {**made, **self.fitted(usual, num_envs)}

    @property
    def settings(self) -> dict[str, Any]:
        """The values of all settings, and of `options`, by name."""
        return {**super().settings, **self.options}

    def is_made(self) -> bool:
        """Whether parts are made, so that settings stay as they are."""
        return self._environment is not None or self._loop is not None

    @property
    def logdir(self) -> pathlib.Path | None:
        """The folder of the run; None if it writes no file."""
        return None if self.given_logdir is None else pathlib.Path(self.given_logdir)

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

    def largest_product(self) -> int:
        """Returns the multiplications of the largest hidden layer in an update.

        The layers that observations enter are left out, and convolutions.
        """
        values = self.settings
        layers = [x for name, x in values.items() if name.endswith("fc_layer_params")]
        sizes = [a * b for units in layers for a, b in itertools.pairwise(units)]
        batch = values.get("minibatch_size") or values.get("batch_size") or 1
        return max(sizes, default=0) * batch

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
    def opponents(self) -> environments.native.Opponents | None:
        """The other players of the game that is trained in, or None."""
        dynamics = getattr(self.environment, "dynamics", None)
        return getattr(dynamics, "opponents", None)

    @property
    def observation_spec(self) -> Any:
        """The spec of the networks' input: an observation, without a mask."""
        return policies.utils.network_observation_spec(
            self.environment.observation_spec(),
            self.agent_keywords().get(_SPLITTER),
        )

    @property
    def has_critic_part(self) -> bool:
        """Whether critics see a part of observations alone, and actors the others."""
        return spaces.has_critic_part(self.observation_spec)

    @property
    def actor_spec(self) -> Any:
        """The spec of the actor's input."""
        spec = self.observation_spec
        return spaces.actors_part(spec) if self.has_critic_part else spec

    @property
    def critic_spec(self) -> Any:
        """The spec of the critics' observations, and of all value networks'."""
        spec = self.observation_spec
        return spec[spaces.CRITIC] if self.has_critic_part else spec

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
        if self.has_critic_part and not self.has_own_critics:
            raise ValueError(
                f"environment: got one whose observation has {spaces.CRITIC!r}, which "
                f"critics alone may see, but {self.title} has no critics apart from "
                "its policy; train PPO, A2C, SAC or TD3, or rename that part."
            )
        networks = self.make_networks()
        own_critics = {}
        for name, given in self._own_networks(networks).items():
            spec = self._part_for(name)(specs[0])
            is_critic = name.startswith("critic") and not spaces.is_one_choice(specs[1])
            taken = (spec, specs[1]) if is_critic else spec
            networks[name] = given_parts.network_of(
                given, spec, specs[1], taken, self.seed
            )
            own_critics.update({name: networks[name]} if is_critic else {})
        make = self.own_agent or self.agent_class()
        keywords = {**self.agent_arguments(), **self.agent_keywords()}
        with (
            given_parts.naming_argument(self.own_arguments or {}, make),
            given_parts.naming_critic(own_critics, (self.critic_spec, specs[1])),
        ):
            agent = make(
                environment.time_step_spec(),
                specs[1],
                **{name: self._seeing(name, x, specs) for name, x in networks.items()},
                **keywords,
            )
        if self.has_critic_part:
            agent.leave_out_of_policy(spaces.CRITIC)
        return agent

    def _part_for(self, name: str) -> Callable[[Any], Any]:
        """Returns the function from observations to what a network sees of them.

        Args:
          name: The agent's argument for the network.
        """
        if not self.has_critic_part:
            return lambda observation: observation
        if name.startswith("actor"):
            return spaces.actors_part
        return operator.itemgetter(spaces.CRITIC)

    def _seeing(self, name: str, network: Any, specs: tuple[Any, Any]) -> Any:
        """Returns a network of observations that gives another its part of them.

        Args:
          name: The agent's argument for the network.
          network: The network.
          specs: The specs of observations and actions.
        """
        if not self.has_critic_part or network is None:
            return network
        part_of = self._part_for(name)
        if not name.startswith("critic"):
            return networks_lib.MaskSplitterNetwork(
                lambda x: (part_of(x), None), network, input_tensor_spec=specs[0]
            )
        return networks_lib.MaskSplitterNetwork(
            lambda pair: ((part_of(pair[0]), pair[1]), None),
            network,
            input_tensor_spec=specs,
        )

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
        suites.check_options(name, self.options)
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
            self.world.describe(
                self.actor_spec,
                self.environment.action_spec(),
                critic_spec=self.critic_spec if self.has_critic_part else None,
                has_mask=self.has_mask,
            )
        agent = self.make_initialized_agent()
        if (opponents := self.opponents) is not None:
            copies = (self.make_initialized_agent() for _ in range(_NUM_OPPONENTS))
            opponents.join([copy.collect_policy for copy in copies])
        if self.initial_run and not self._has_checkpoint():
            path = train.load_weights(agent, self.initial_run)
            log.info(f"Initial weights: {path}")
        self._loop = self.make_loop(agent)
        return self._loop

    def draw_pictures(self, folder: pathlib.Path) -> None:
        """Draws what the report shows beside the numbers of every algorithm.

        Args:
          folder: The folder of the run, to write to.
        """

    def _has_checkpoint(self) -> bool:
        """Whether the run resumes in its folder."""
        folder = self.logdir
        return folder is not None and bool(
            checkpoint_names.newest_first(folder / "checkpoints")
        )

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
