"""Makes the environments of a run: to train in, to evaluate and to film."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Mapping
from typing import Any

import tree

from tfrl import environments, networks, train
from tfrl.algorithms import settings as settings_lib
from tfrl.algorithms import spaces
from tfrl.bandits.environments import loading as bandit_loading
from tfrl.environments import suites
from tfrl.environments.boundary import conversion
from tfrl.system import log

# The names of bandits, which `environments` does not import.
bandit_loading.add_suite()


class ActionFit:
    """Fits the actions of environments to an algorithm; see `spaces.fit_actions`.

    Attributes:
      kind: The kind of the algorithm's actions.
      title: The algorithm's name.
      clip: Whether the algorithm's actions may be out of bounds, and are clipped.
      is_offline: Whether the algorithm learns from recorded data.
    """

    def __init__(
        self,
        kind: spaces.Kind,
        title: str,
        clip: bool = False,
        is_offline: bool = False,
    ) -> None:
        """Stores the arguments."""
        self.kind, self.title = kind, title
        self.clip, self.is_offline = clip, is_offline
        self._pair: tuple[Any, Any] = (None, None)

    def __getstate__(self) -> dict[str, Any]:
        """Leaves the last environment out of copies, also those in other processes."""
        return {**vars(self), "_pair": (None, None)}

    def __call__(
        self, environment: environments.PyEnvironment, name: str
    ) -> environments.PyEnvironment:
        """Returns the environment with actions that the algorithm chooses."""
        fitted = spaces.fit_actions(
            environment,
            self.kind,
            self.title,
            name,
            clip=self.clip,
            is_offline=self.is_offline,
        )
        self._pair = fitted, environment
        return fitted

    @property
    def has_changed_actions(self) -> bool:
        """Whether the actions of the last environment were changed."""
        return self._pair[0] is not self._pair[1]

    @property
    def original_spec(self) -> Any:
        """The action spec of the last environment before; None if there is none."""
        return None if self._pair[1] is None else self._pair[1].action_spec()

    def original(self, action: Any) -> Any:
        """Returns the last environment's action for an action of the fitted one."""
        return spaces.original_action(*self._pair, action)

    def original_tensors(self, action: Any) -> Any:
        """Does the same as `original` with tensors `[B, ...]`, in a graph."""
        return spaces.original_tensors(*self._pair, action)


class Probe:
    """A user's environment, whose kind can be found before it is used.

    Attributes:
      environment: The environment, or a function that makes one.
    """

    def __init__(self, environment: Any) -> None:
        """Stores an environment, or a function that makes one, or a name."""
        self._given = self.environment = environment
        # The members that belong together in a batch; None before a function made one.
        self._members: int | None = None

    def find_kind(self) -> str | None:
        """Returns the kind, see `presets.Preset`, or None.

        If a function was given, it is called once; `environment` then returns this
        result first.
        """
        if isinstance(self._given, str):
            return suites.kind_of(self._given)
        if conversion.is_environment(self._given):
            return conversion.kind_of(self._given)
        if not callable(self._given):
            return None  # `World` refuses it.
        made = [suites.call(self._given)]
        self.environment = lambda: made.pop() if made else self._given()
        has_agents = conversion.has_agents(made[0])
        self._members = conversion.batch_size_of(made[0]) if has_agents else 1
        return conversion.kind_of(made[0])

    def num_envs(self, default: int) -> int | None:
        """Returns the members of a batch, where the environment decides it, or None.

        Args:
          default: The number that settings have.
        """
        count = conversion.batch_size_of(self._given)
        if count is not None:
            return count
        if isinstance(self._given, str):
            self._members = suites.members_of(self._given)
        elif self._members is None:
            self.find_kind()
        agents = self._members or 1
        return -(-default // agents) * agents if agents > 1 else None


def chosen_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options of environments that are not at their defaults, checked.

    Raises:
      ValueError: A value is out of its range.
      TypeError: It is not a number.
    """
    known = suites.options()
    for name, value in values.items():
        known[name].check(name, value, remedy=settings_lib.remedy_for(name))
    return {k: x for k, x in values.items() if x != known[k].default}


def own_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those settings of a run that `make_environment` takes, by name."""
    names = ("num_action_bins", *suites.options())
    return {name: values[name] for name in names if name in values}


def make_environment(
    given: Any,
    num_envs: int,
    seed: int,
    num_action_bins: int = 0,
    *,
    fit: ActionFit | None = None,
    name: str = "",
    is_training: bool = False,
    **options: Any,
) -> environments.TFEnvironment:
    """Makes one environment, or `num_envs` of them stepped together.

    Args:
      given: The name of an environment, a function that makes one, an environment, or
        `native.Dynamics`; see `environments.suites`.
      num_envs: The number of environments, unless `given` is an environment.
      seed: The seed.
      num_action_bins: The number of evenly spaced values of the environment's
        continuous action, whose numbers are then the actions.
      fit: Fits the environment's actions to an algorithm; None leaves them.
      name: The environment's name, if `given` is not a name.
      is_training: Whether an agent trains in it; see `suites.load`.
      **options: The options of its suite that are not at their defaults.

    Raises:
      ValueError: The action cannot be put in bins, or there is no such environment, or
        it has no such option.
    """
    if isinstance(given, environments.TFEnvironment):
        return given
    suites.check_options(given, options)
    if suites.find(given)[0].is_native:
        dynamics = suites.find_dynamics(given, num_action_bins)
        if is_training and dynamics.against is not None:
            dynamics = dynamics.against(environments.native.Opponents())
        num_envs += -num_envs % dynamics.members
        return environments.native.NativeEnvironment(dynamics, num_envs, seed)
    name = given if isinstance(given, str) else name
    environment = suites.load(given, num_envs, is_training=is_training, **options)
    if num_action_bins:
        try:
            environment = environments.wrappers.ActionDiscretizeWrapper(
                environment, num_action_bins
            )
        except ValueError as error:
            raise ValueError(f"num_action_bins for {name!r}: {error}") from None
    if fit is not None:
        environment = fit(environment, name)
    seed_if_possible(environment, seed)
    return environments.TFPyEnvironment(environment)


class World:
    """Where an algorithm trains, and where its policy is evaluated and filmed.

    Attributes:
      name: The environment's name; empty if it has none.
      fit: Fits actions to the algorithm.
    """

    def __init__(
        self,
        environment: Any,
        recipe: settings_lib.Settings,
        fit: ActionFit,
        evaluation_environment: Any = None,
        name: str = "",
    ) -> None:
        """Creates the world; no environment is made yet.

        Args:
          environment: The name of an environment, or a function without arguments that
            makes one, or an environment: Gymnasium's, a vector of these, dm_env's, or
            one of `tfrl.environments`. An environment is used only for training.
          recipe: The settings of the algorithm.
          fit: Fits actions to the algorithm.
          evaluation_environment: The same, to evaluate and film in; None for
            `environment`, or for the environment that is registered by its `spec`.
          name: The environment's name, if `environment` is not a name.

        Raises:
          TypeError: `environment` is something else.
        """
        self.name = environment if isinstance(environment, str) else name
        self._training = environment
        self._recipe = recipe
        self.fit = fit
        if evaluation_environment is None:
            evaluation_environment = environment
            registered = getattr(getattr(environment, "spec", None), "id", None)
            if registered:
                evaluation_environment = registered
                self.name = self.name or registered
        self._evaluation = evaluation_environment
        for argument, value in (
            ("environment", environment),
            ("evaluation_environment", evaluation_environment),
        ):
            if not (
                isinstance(value, str)
                or conversion.is_environment(value)
                or callable(value)
                or isinstance(value, environments.native.Dynamics)
            ):
                raise TypeError(
                    f"{argument}: got a {type(value).__name__}, expected the name of "
                    "an environment, a function that makes one, or an environment of "
                    "Gymnasium, dm_env or tfrl.environments."
                )

    def _make(self, given: Any, num_envs: int, seed: int, **options: Any) -> Any:
        """Makes environments with the settings of the algorithm."""
        common = {"name": self.name, "fit": self.fit}
        own = own_settings(self._recipe.settings)
        return make_environment(given, num_envs, seed, **{**common, **own, **options})

    def make_training(self) -> environments.TFEnvironment:
        """Makes the environment to train in."""
        # An environment in TensorFlow is a part of the program on the agent's device.
        s, (suite, _) = self._recipe, suites.find(self._training)
        num_envs = s.settings.get("num_envs", 1)
        with train.device_scope(s.device if suite.is_native else ""):
            made: environments.TFEnvironment = self._make(
                self._training, num_envs, s.seed, is_training=True
            )
        return made

    def make_evaluation(self, count: int, seed: int) -> environments.TFEnvironment:
        """Makes environments to run a number of episodes in parallel.

        Raises:
          ValueError: The program gave an environment to train in, and none to evaluate
            in.
        """
        is_made = conversion.is_environment(self._evaluation)
        if is_made and self._evaluation is self._training:
            raise ValueError(
                "evaluation_environment: got none, and the environment that was given "
                "to train in cannot be evaluated in as well; give another one, or a "
                "function that makes environments, or the name of a registered one."
            )
        made: environments.TFEnvironment = self._make(self._evaluation, count, seed)
        return made

    def has_time_limit(self, environment: environments.TFEnvironment) -> bool:
        """Whether an environment of `make_evaluation` truncates its episodes."""
        is_limited = suites.find(self._evaluation)[0].has_time_limit
        return is_limited or environments.time_limits.find(environment) is not None

    def make_film(self) -> environments.TFEnvironment | None:
        """Makes an environment to film; None if it cannot be rendered as pictures."""
        suite, name = suites.find(self._evaluation)
        films = suite.films(name) if callable(suite.films) else suite.films
        if films is False:
            return None
        environment = self._make(self._evaluation, 1, 1)
        mode = getattr(environment, "render_mode", None)
        return environment if films or mode == "rgb_array" else None

    def facts(self) -> dict[str, Any]:
        """Returns facts about the environment; see `environment_facts.find`.

        They are found on copies. An environment that a program made cannot be copied,
        and one in TensorFlow is no Python environment: there are no facts about these.
        """
        from tfrl.eval import environment_facts

        both = (self._training, self._evaluation)
        if any(map(conversion.is_environment, both)):
            return {}
        fit = copy.copy(self.fit)

        def copy_of(given: Any, *, is_training: bool) -> Any:
            made: Any = self._make(given, 1, 0, is_training=is_training, fit=fit)
            return made.pyenv  # An environment in TensorFlow has none.

        copies = [functools.partial(copy_of, self._training, is_training=True)]
        if self._evaluation is not self._training:
            copies += [functools.partial(copy_of, self._evaluation, is_training=False)]
        return environment_facts.find(*copies)

    def describe(
        self,
        observation_spec: Any,
        action_spec: Any,
        *,
        critic_spec: Any = None,
        has_mask: bool,
    ) -> None:
        """Prints how networks encode images, or the parts of an observation.

        Args:
          observation_spec: The nest of specs of the actor's observation.
          action_spec: The nest of specs of an action.
          critic_spec: That of the critics' observation, if it is another one.
          has_mask: Whether there are masks of actions.
        """
        leaves = tree.flatten(observation_spec)
        is_vector = len(leaves) == 1 and len(leaves[0].shape) < 2
        is_new = self.fit.has_changed_actions or has_mask or critic_spec is not None
        if is_new or not is_vector:
            convolutions = self._recipe.settings.get("conv_layer_params") or None
            text = spaces.describe(observation_spec, action_spec, convolutions)
            masked = f"; {spaces.MASK}: the legal actions" if has_mask else ""
            log.info(f"Networks: {text}{masked}.")
            if critic_spec is not None:
                seen = networks.layers.encoders.describe(critic_spec, convolutions)
                log.info(f"Critics see {spaces.CRITIC} alone: {seen}.")


def seed_if_possible(
    environment: environments.PyEnvironment | environments.TFEnvironment, seed: int
) -> None:
    """Seeds an environment, unless it has no seed."""
    with contextlib.suppress(NotImplementedError):
        environment.seed(seed)
