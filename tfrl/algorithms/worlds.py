"""Makes the environments of a run: to train in, to evaluate and to film."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import tree

from tfrl import environments, train
from tfrl.algorithms import grids, spaces, velocities
from tfrl.algorithms import settings as settings_lib
from tfrl.system import log


class ActionFit:
    """Fits the actions of environments to an algorithm; see `spaces.fit_actions`.

    Attributes:
      kind: The kind of the algorithm's actions.
      title: The algorithm's name.
      clip: Whether the algorithm's actions may be out of bounds, and are clipped.
    """

    def __init__(self, kind: spaces.Kind, title: str, clip: bool = False) -> None:
        """Stores the arguments."""
        self.kind, self.title, self.clip = kind, title, clip
        self._pair: tuple[Any, Any] = (None, None)

    def __call__(
        self, environment: environments.PyEnvironment, name: str
    ) -> environments.PyEnvironment:
        """Returns the environment with actions that the algorithm chooses."""
        fitted = spaces.fit_actions(
            environment, self.kind, self.title, name, clip=self.clip
        )
        self._pair = fitted, environment
        return fitted

    @property
    def has_changed_actions(self) -> bool:
        """Whether the actions of the last environment were changed."""
        return self._pair[0] is not self._pair[1]

    def original(self, action: Any) -> Any:
        """Returns the last environment's action for an action of the fitted one."""
        return spaces.original_action(*self._pair, action)


# The settings that environments are made with.
SETTINGS = ("num_action_bins", "emulator", "grid_observations")


# Packages of Gymnasium whose environments are made in milliseconds.
_MADE_AT_ONCE = ("gymnasium.envs.classic_control", "gymnasium.envs.toy_text")

# Of smaller pictures the convolutions for Atari's games leave nothing.
_SMALLEST_PICTURE = 36


def find_action_space(name: str) -> Any:
    """Checks an environment's name without TensorFlow; returns its action space.

    Returns None for a space that is not known before the environment is made.

    Raises:
      ImportError: The extra that brings the environment is not installed.
      ValueError: There is no environment, game or task of this name.
    """
    import gymnasium

    name, _ = velocities.split(name)
    if _has_suite(name):
        if environments.suite_atari.is_game(name):
            environments.suite_atari.check_game(name)
        elif environments.suite_dm_control.is_task(name):
            environments.suite_dm_control.check_task(name)
        return None
    spec = environments.suite_gym.find_spec(name)
    if not str(spec.entry_point).startswith(_MADE_AT_ONCE):
        return None
    return gymnasium.make(spec, disable_env_checker=True).action_space


@functools.cache
def kind_of(name: str) -> str | None:
    """Returns the kind of a registered environment, see `presets.Preset`, or None.

    It makes the environment, without TensorFlow.
    """
    import gymnasium

    name, _ = velocities.split(name)
    if not name or _has_suite(name):
        return None
    try:
        spec = environments.suite_gym.find_spec(name)
        if str(spec.entry_point).startswith(_MADE_AT_ONCE):
            return None
        made = gymnasium.make(spec, disable_env_checker=True)
    except Exception:  # The run makes it, too, and says what is wrong.
        return None
    made.close()
    return _kind_of_made(made)


def _kind_of_made(made: Any) -> str | None:
    """Returns the kind of an environment that is made, or None."""
    spaces_of = ("single_observation_space", "observation_space")
    spec = next(
        (getattr(made, name) for name in spaces_of if hasattr(made, name)), None
    )
    if spec is None and hasattr(made, "observation_spec"):
        spec = made.observation_spec()
    shape, dtype = getattr(spec, "shape", None) or (), getattr(spec, "dtype", None)
    is_picture = (
        getattr(dtype, "name", "") == "uint8"
        and len(shape) == 3
        and min(shape[:2]) >= _SMALLEST_PICTURE
    )
    return "pictures" if is_picture else None


class Probe:
    """A user's environment, whose kind can be found before it is used.

    Attributes:
      environment: The environment, or a function that makes one.
    """

    def __init__(self, environment: Any) -> None:
        """Stores an environment, or a function that makes one, or a name."""
        self._given = self.environment = environment

    def find_kind(self) -> str | None:
        """Returns the kind, see `presets.Preset`, or None.

        If a function was given, it is called once; `environment` then returns this
        result first.
        """
        if isinstance(self._given, str):
            return kind_of(self._given)
        if _is_made(self._given):
            return _kind_of_made(self._given)
        if not callable(self._given):
            return None  # `World` refuses it.
        made = [self._given()]
        self.environment = lambda: made.pop() if made else self._given()
        return _kind_of_made(made[0])


def _has_suite(name: str) -> bool:
    """Whether an environment belongs to a suite outside Gymnasium's registry."""
    return (
        name.startswith("BitFlipping")  # The suite of these needs TensorFlow.
        or environments.suite_atari.is_game(name)
        or environments.suite_dm_control.is_task(name)
    )


def make_environment(
    name: str,
    num_envs: int,
    seed: int,
    num_action_bins: int = 0,
    *,
    is_training: bool = False,
    emulator: str = "ale-py",
    grid_observations: str = "flat",
    fit: ActionFit | None = None,
) -> environments.TFEnvironment:
    """Makes one Gymnasium environment, or `num_envs` of them stepped together.

    Tasks of dm_control have names such as dm_control/cartpole-balance, and environments
    without velocities such as CartPoleNoVel-v1; see `velocities`. BitFlipping10-v0 is
    written in TensorFlow; see `tfrl.environments.native.bit_flipping`.

    Args:
      name: The environment's name.
      num_envs: The number of environments.
      seed: The seed.
      num_action_bins: The number of evenly spaced values of the environment's
        continuous action, whose numbers are then the actions.
      is_training: Whether a lost life in an Atari game ends an episode, and rewards
        become their signs. Games have the usual preprocessing in any case.
      emulator: See `suite_atari.load_batch`.
      grid_observations: How MiniGrid's grids are seen; see `grids.wrappers_of`.
      fit: Fits the environment's actions to an algorithm; None leaves them.

    Raises:
      ValueError: The action cannot be put in bins.
      gymnasium.error.Error: There is no environment of this name.
    """
    if environments.native.bit_flipping.is_task(name):
        return make_native_environment(name, num_envs, seed, num_action_bins)
    environment: environments.PyEnvironment
    name, positions = velocities.split(name)
    gym_env_wrappers = grids.wrappers_of(name, grid_observations)
    if environments.suite_atari.is_game(name):
        environment = environments.suite_atari.load_batch(
            name,
            num_envs,
            noop_max=30,
            fire_on_reset=True,
            terminal_on_life_loss=is_training,
            clip_rewards=is_training,
            emulator=emulator,
        )
    elif environments.suite_dm_control.is_task(name):
        environment = environments.suite_dm_control.load_batch(name, num_envs)
    elif num_envs == 1:
        environment = environments.suite_gym.load(
            name, gym_env_wrappers=gym_env_wrappers
        )
    else:
        environment = environments.gymnasium.vector_py_environment.load(
            name, num_envs, gym_env_wrappers=gym_env_wrappers
        )
    if positions is not None:
        environment = environments.wrappers.ObservationFilterWrapper(
            environment, positions
        )
    if num_action_bins:
        try:
            environment = environments.wrappers.ActionDiscretizeWrapper(
                environment, num_action_bins
            )
        except ValueError as error:
            raise ValueError(f"num_action_bins for {name!r}: {error}") from None
    if fit is not None:
        environment = fit(environment, name)
    environment.seed(seed)
    return environments.TFPyEnvironment(environment)


def make_native_environment(
    name: str, num_envs: int, seed: int, num_action_bins: int = 0
) -> environments.native.NativeEnvironment:
    """Makes an environment that is written in TensorFlow; see `make_environment`."""
    dynamics = find_dynamics(name, num_action_bins)
    return environments.native.NativeEnvironment(dynamics, num_envs, seed)


def find_dynamics(environment: Any, num_action_bins: int = 0) -> Any:
    """Returns the dynamics of an environment in TensorFlow; None for another one.

    Args:
      environment: The name of an environment, `Dynamics`, a `NativeEnvironment`, or
        anything else.
      num_action_bins: The values of a continuous action; 0 leaves it.
    """
    native = environments.native
    if isinstance(environment, str):
        is_native = environment in native.names() or (
            native.bit_flipping.is_task(environment)
        )
        dynamics = native.load(environment).dynamics if is_native else None
    else:
        dynamics = getattr(environment, "dynamics", environment)
    if not isinstance(dynamics, native.Dynamics):
        return None
    if num_action_bins:
        return native.discretize_actions(dynamics, num_action_bins)
    return dynamics


def make_video_environment(
    name: str, **settings: Any
) -> environments.TFEnvironment | None:
    """Makes an environment to film; None if it cannot be rendered as pictures.

    The settings are further arguments of `make_environment`.
    """
    if environments.suite_atari.is_game(
        name
    ) or environments.native.bit_flipping.is_task(name):
        return make_environment(name, 1, 1, **settings)
    if environments.suite_dm_control.is_task(name):
        return None
    spec = environments.suite_gym.find_spec(velocities.split(name)[0])
    kwargs = {**spec.kwargs, **environments.suite_gym.make_kwargs(spec)}
    if kwargs.get("render_mode") != "rgb_array":
        return None
    return make_environment(name, 1, 1, **settings)


def own_settings(values: Any) -> dict[str, Any]:
    """Returns those settings of a run that `make_environment` takes.

    Args:
      values: The run's settings, by name.
    """
    return {name: values[name] for name in SETTINGS if name in values}


def refuse_games(name: str) -> None:
    """Raises a ValueError for an Atari game, for runs with actors."""
    if environments.suite_atari.is_game(name):
        raise ValueError(
            f"env: got {name!r}, an Atari game, which actors do not play; "
            f"train in one process: tfrl train dqn --env={name}"
        )


def is_limited(name: str) -> bool:
    """Whether the environment of a name truncates its episodes."""
    name, _ = velocities.split(name)
    suites = (
        environments.suite_atari.is_game,
        environments.suite_dm_control.is_task,
        environments.native.bit_flipping.is_task,
        grids.is_grid,  # Their classes have limits, and their specs do not.
    )
    if any(is_one(name) for is_one in suites):
        return True
    return environments.suite_gym.find_spec(name).max_episode_steps is not None


class World:
    """Where an algorithm trains, and where its policy is evaluated and filmed.

    Attributes:
      name: The environment's name; empty if it has none.
      fit: Fits actions to the algorithm.
    """

    def __init__(
        self,
        environment: Any,
        settings: settings_lib.Settings,
        fit: ActionFit,
        evaluation_environment: Any = None,
        name: str = "",
    ) -> None:
        """Creates the world; no environment is made yet.

        Args:
          environment: The name of an environment, or a function without arguments that
            makes one, or an environment: Gymnasium's, a vector of these, dm_env's, or
            one of `tfrl.environments`. An environment is used only for training.
          settings: The settings of the algorithm.
          fit: Fits actions to the algorithm.
          evaluation_environment: The same, to evaluate and film in; None for
            `environment`, or for the environment that is registered by its `spec`.
          name: The environment's name, if `environment` is not a name.

        Raises:
          TypeError: `environment` is something else.
        """
        self.name = environment if isinstance(environment, str) else name
        self._training = environment
        self._settings = settings
        self.fit = fit
        self._own = own_settings(settings.to_dict())
        if evaluation_environment is None:
            evaluation_environment = environment
            registered = getattr(getattr(environment, "spec", None), "id", None)
            if registered and not isinstance(environment, str):
                evaluation_environment = registered
                self.name = self.name or registered
        self._evaluation = evaluation_environment
        for argument, value in (
            ("environment", environment),
            ("evaluation_environment", evaluation_environment),
        ):
            if not (isinstance(value, str) or _is_made(value) or callable(value)):
                raise TypeError(
                    f"{argument}: got a {type(value).__name__}, expected the name of "
                    "an environment, a function that makes one, or an environment of "
                    "Gymnasium, dm_env or tfrl.environments."
                )

    def make_training(self) -> environments.TFEnvironment:
        """Makes the environment to train in."""
        s = self._settings
        num_envs = getattr(s, "num_envs", 1)
        if not isinstance(self._training, str):
            return self._of_program(self._training, num_envs, s.seed)
        # An environment in TensorFlow is a part of the program on the agent's device.
        is_native = environments.native.bit_flipping.is_task(self._training)
        with train.device_scope(s.device if is_native else ""):
            return make_environment(
                self._training,
                num_envs,
                s.seed,
                is_training=True,
                fit=self.fit,
                **self._own,
            )

    def make_evaluation(self, count: int, seed: int) -> environments.TFEnvironment:
        """Makes environments to run a number of episodes in parallel.

        Raises:
          ValueError: The program gave an environment to train in, and none to evaluate
            in.
        """
        if isinstance(self._evaluation, str):
            return make_environment(
                self._evaluation, count, seed, fit=self.fit, **self._own
            )
        if _is_made(self._evaluation) and self._evaluation is self._training:
            raise ValueError(
                "evaluation_environment: got none, and the environment that was given "
                "to train in cannot be evaluated in as well; give another one, or a "
                "function that makes environments, or the name of a registered one."
            )
        return self._of_program(self._evaluation, count, seed)

    def has_time_limit(self, environment: environments.TFEnvironment) -> bool:
        """Whether an environment of `make_evaluation` truncates its episodes."""
        if isinstance(self._evaluation, str):
            return is_limited(self._evaluation)
        return environments.time_limits.find(environment) is not None

    def make_film(self) -> environments.TFEnvironment | None:
        """Makes an environment to film; None if it cannot be rendered as pictures."""
        if isinstance(self._evaluation, str):
            return make_video_environment(self._evaluation, fit=self.fit, **self._own)
        if _is_made(self._evaluation):
            return None
        environment = self._of_program(self._evaluation, 1, 1)
        modes = getattr(environment, "render_mode", None)
        return environment if modes == "rgb_array" else None

    def facts(self) -> dict[str, Any]:
        """Returns facts about the environment; see `environment_facts.find`.

        They are found on copies. An environment that a program made cannot be copied,
        and one in TensorFlow is no Python environment: there are no facts about these.
        """
        from tfrl.eval import environment_facts

        if any(_is_made(each) for each in (self._training, self._evaluation)):
            return {}
        fit = ActionFit(self.fit.kind, self.fit.title, self.fit.clip)

        def copy_of(given: Any, *, is_training: bool) -> Any:
            made: Any
            if isinstance(given, str):
                made = make_environment(
                    given, 1, 0, is_training=is_training, fit=fit, **self._own
                )
            else:
                made = self._of_program(given, 1, 0, fit)
            return made.pyenv  # An environment in TensorFlow has none.

        is_other = self._evaluation is not self._training
        return environment_facts.find(
            functools.partial(copy_of, self._training, is_training=True),
            functools.partial(copy_of, self._evaluation, is_training=False)
            if is_other
            else None,
        )

    def describe(self, observation_spec: Any, action_spec: Any) -> None:
        """Prints how networks encode images, or the parts of an observation."""
        leaves = tree.flatten(observation_spec)
        if self.fit.has_changed_actions or len(leaves) > 1 or len(leaves[0].shape) > 1:
            convolutions = self._settings.conv_layer_params or None
            text = spaces.describe(observation_spec, action_spec, convolutions)
            log.info(f"Networks: {text}.")

    def _of_program(
        self, given: Any, num_envs: int, seed: int, fit: ActionFit | None = None
    ) -> environments.TFEnvironment:
        """Returns a program's environments, or makes them with its function."""
        if isinstance(given, environments.TFEnvironment):
            return given
        environment: environments.PyEnvironment
        if _is_made(given):
            environment = _as_py_environment(given)
        else:
            members = [_as_py_environment(given()) for _ in range(num_envs)]
            environment = members[0]
            if num_envs > 1:
                environment = environments.BatchedPyEnvironment(members)
        environment = (fit or self.fit)(environment, self.name)
        seed_if_possible(environment, seed)
        return environments.TFPyEnvironment(environment)


def seed_if_possible(
    environment: environments.PyEnvironment | environments.TFEnvironment, seed: int
) -> None:
    """Seeds an environment, unless it has no seed."""
    with contextlib.suppress(NotImplementedError):
        environment.seed(seed)


def _kinds() -> dict[type, Callable[[Any], Any]]:
    """Returns how environments of other libraries become ours, by their classes."""
    import dm_env
    import gymnasium

    return {
        environments.TFEnvironment: lambda given: given,
        environments.PyEnvironment: lambda given: given,
        gymnasium.vector.VectorEnv: environments.VectorPyEnvironment,
        gymnasium.Env: environments.suite_gym.wrap_env,
        dm_env.Environment: environments.DmEnvWrapper,
    }


def _is_made(given: Any) -> bool:
    """Whether a program gave an environment, and not a name or a function."""
    return not isinstance(given, str | type) and isinstance(given, tuple(_kinds()))


def batch_size_of(given: Any) -> int | None:
    """Returns how many environments a program gave; None for a name or a function."""
    if not _is_made(given):
        return None
    count = getattr(given, "num_envs", None) or getattr(given, "batch_size", None)
    return int(count or 1)


def _as_py_environment(given: Any) -> environments.PyEnvironment:
    for kind, convert in _kinds().items():
        if isinstance(given, kind):
            made: environments.PyEnvironment = convert(given)
            return made
    raise TypeError(
        f"environment: the function returned a {type(given).__name__}, expected an "
        "environment of Gymnasium, dm_env or tfrl.environments."
    )
