"""`GymWrapper` and `GymAtariAdapter` turn Gymnasium's environments into dm_env's."""

from __future__ import annotations

from typing import Any

import dm_env
import gymnasium
import numpy as np

from tfrl.environments import gymnasium_wrapper, py_to_dm_wrapper
from tfrl.specs import array_spec

# Spaces whose dtypes a `PyEnvironment` does not keep by default.
_SPACES = (gymnasium.spaces.MultiDiscrete, gymnasium.spaces.MultiBinary)


class GymWrapper(py_to_dm_wrapper.PyToDMWrapper):
    """A `gymnasium.Env` as a dm_env environment, with specs made from its spaces.

    `terminated` becomes a LAST step with discount 0, with or without `truncated`;
    `truncated` alone becomes a LAST step with discount 1, `dm_env.truncation`. Rewards
    and discounts are float64 numbers, as in dm_env and Acme; `SinglePrecisionWrapper`
    makes them float32. `Discrete(n)` becomes a `DiscreteArray`; if it does not start at
    0, it and the other spaces become `BoundedArray`s, in tuples and dicts. All keep the
    dtypes of the spaces.

    Attributes that are not found here are looked up in tfrl's `GymnasiumWrapper`
    (`seed`) and in the Gymnasium environment.
    """

    def __init__(self, environment: gymnasium.Env):
        """Wraps `environment`.

        Args:
          environment: The Gymnasium environment.

        Raises:
          ValueError: If a space has no spec.
        """
        super().__init__(
            gymnasium_wrapper.GymnasiumWrapper(
                environment,
                spec_dtype_map=dict.fromkeys(_SPACES),
                simplify_box_bounds=False,
                reward_spec=array_spec.ArraySpec((), np.float64, "reward"),
            )
        )
        self._discount_spec = dm_env.Environment.discount_spec(self)
        self._gym_env = environment

    @property
    def environment(self) -> gymnasium.Env:  # type: ignore[override]
        """The Gymnasium environment."""
        return self._gym_env

    def render(self, *mode: str, **keywords: str) -> Any:
        """Returns what the Gymnasium environment renders; see `PyEnvironment.render`.

        Without a mode, the environment renders as it was made to.
        """
        if mode or keywords:
            return self._environment.render(*mode, **keywords)
        return self._gym_env.render()

    def get_info(self) -> dict[str, Any] | None:
        """Returns Gymnasium's latest `info`; None before the first reset."""
        return self._environment.get_info()


class GymAtariAdapter(GymWrapper):
    """A game of ale-py, whose observations are pairs of the screen and the lives.

    The screen is uint8 `[210, 160, 3]`, the lives a float64 scalar. As in Acme, actions
    and their spec are lists of one. `AtariWrapper` makes the usual observations of it.

    >>> import ale_py, gymnasium
    >>> gymnasium.register_envs(ale_py)
    >>> game = GymAtariAdapter(gymnasium.make("BreakoutNoFrameskip-v4"))
    >>> screen, lives = game.reset().observation
    >>> screen.shape, float(lives)
    ((210, 160, 3), 5.0)
    """

    def __init__(self, environment: gymnasium.Env):
        """Wraps `environment`.

        Args:
          environment: A game of ale-py that shows its screen in colours.

        Raises:
          ValueError: If it is not a game of ale-py.
        """
        super().__init__(_WithLives(environment))
        self._gym_env = environment

    def step(self, action: Any) -> dm_env.TimeStep:
        """Applies the only entry of `action`, or starts an episode after a LAST step.

        Args:
          action: A list of one integer.
        """
        return super().step(action[0])

    def observation_spec(self) -> Any:
        """The specs of the screen and of the lives."""
        screen, lives = super().observation_spec()
        return screen.replace(name="screen"), lives.replace(name="lives")

    def action_spec(self) -> Any:
        """A list with the spec of the action."""
        return [super().action_spec()]


# The name in Acme's first releases.
AtariGymWrapper = GymAtariAdapter


class _WithLives(gymnasium.ObservationWrapper):
    """Observes the number of lives too."""

    def __init__(self, env: gymnasium.Env):
        super().__init__(env)
        if not hasattr(env.unwrapped, "ale"):
            raise ValueError(
                f"environment: got {env}, which has no lives, expected a game of "
                "ale-py; wrap other environments in tfrl.acme.wrappers.GymWrapper."
            )
        self.observation_space = gymnasium.spaces.Tuple(
            (
                env.observation_space,
                gymnasium.spaces.Box(0.0, np.inf, (), np.float64),
            )
        )

    def observation(self, observation: Any) -> Any:
        return observation, float(self.unwrapped.ale.lives())  # type: ignore[attr-defined]
