"""`Dynamics`, an environment as pure functions of state, action and random numbers.

`discretize_actions` gives such an environment discrete actions; `GymnasiumRenderer`
draws its states as Gymnasium does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

from tfrl.environments.boundary import action_specs
from tfrl.specs import tensor_spec
from tfrl.utils import number_checks


class Outcome(NamedTuple):
    """The result of one step of `Dynamics`.

    Attributes:
      state: The next physical state, a nest of tensors `[B, ...]`.
      reward: The rewards, float32 `[B]`.
      terminated: Whether the episode terminates here, bool `[B]`.
      truncated: Whether the dynamics themselves end the episode here without a
        termination, bool `[B]`; None if they never do. `max_episode_steps` needs none.
    """

    state: Any
    reward: Any
    terminated: Any
    truncated: Any = None


@dataclasses.dataclass(frozen=True, eq=False)
class Dynamics:
    """The rules of an environment, for `NativeEnvironment` to run.

    The functions are pure, batched, and of static shapes: they keep no Python state,
    use no random operations (random numbers are passed in) and call nothing on the
    host. All members are computed at every step, so choose with `tf.where`. The
    functions are checked when an environment is made from them. The state is a nest of
    tensors `[B, ...]`; a single tensor `[B, n]` is fastest.

    Attributes:
      initial: `initial(random) -> state` begins an episode of every member; `random` is
        float32 `[B, num_initial_randoms]`, uniform in [0, 1).
      step: `step(state, action, random) -> Outcome`; `action` follows `action_spec`,
        with the batch in front, and `random` is `[B, num_step_randoms]`. Actions are
        not clipped to the bounds of their spec.
      observation_spec: The nest of tensor specs of one member's observation.
      action_spec: The nest of tensor specs of one member's action.
      num_initial_randoms: The number of random numbers for each member in `initial`,
        and in `restart`.
      num_step_randoms: The number of random numbers for each member in `step`.
      observe: `observe(state) -> observation`, `[B, ...]`; None observes the state.
      max_episode_steps: The number of steps after which an episode is truncated; None
        for no limit.
      render: `render(state) -> uint8 [height, width, 3]` draws one member, whose state
        is passed as NumPy arrays without the batch; None if there is no picture.
      compute_reward: `compute_reward(achieved_goal, desired_goal) -> reward`, for a
        replay buffer that relabels goals (`replay_buffers.Hindsight`). It returns the
        rewards, float32 `[N]`, of steps that have achieved the goals `achieved_goal`,
        for goals `[N, ...]`. None for an environment without goals.

      is_bandit: Whether each step is a whole round: the next state is the state of the
        next round, and `step` says that all members have terminated; see
        `TFEnvironment.is_bandit`.
      restart: `restart(state, needed, random) -> state` begins an episode of the
        members of which `needed`, bool `[B]`, is true, by the random numbers of
        `initial`, and leaves the others. It serves dynamics whose `initial` takes long;
        None computes `initial` of all members at every step, and selects.
      levels: The variables that the functions read, by name, which
        `NativeEnvironment.change` assigns to; see `train.Curriculum`.
      opponents: The `self_play.Opponents` that the functions ask for actions; None for
        an environment without.
      against: Returns the same game against other `Opponents`; None for an environment
        that is no game.
      members: The members of a batch that belong together, such as the agents of one
        environment; they follow one another.

    Raises:
      TypeError: If a function is not callable, or a spec is not of tensors.
      ValueError: If a number is negative, or the limit is below 1.
    """

    initial: Callable[[tf.Tensor], Any]
    step: Callable[[Any, Any, tf.Tensor], Outcome]
    observation_spec: Any
    action_spec: Any
    num_initial_randoms: int
    num_step_randoms: int = 0
    observe: Callable[[Any], Any] | None = None
    max_episode_steps: int | None = None
    render: Callable[[Any], Any] | None = None
    compute_reward: Callable[[Any, Any], Any] | None = None
    is_bandit: bool = False
    restart: Callable[[Any, tf.Tensor, tf.Tensor], Any] | None = None
    levels: Mapping[str, tf.Variable] = dataclasses.field(default_factory=dict)
    opponents: Any = None
    against: Callable[[Any], Dynamics] | None = None
    members: int = 1

    def __post_init__(self) -> None:
        for name in ("initial", "step"):
            self._check_callable(name, is_optional=False)
        for name in ("restart", "observe", "render", "compute_reward"):
            self._check_callable(name, is_optional=True)
        for name in ("observation_spec", "action_spec"):
            self._check_spec(name)
        for name in ("num_initial_randoms", "num_step_randoms"):
            number_checks.check_integer(
                name,
                getattr(self, name),
                0,
                remedy="say how many random numbers one member needs",
            )
        number_checks.check_integer(
            "max_episode_steps",
            self.max_episode_steps,
            1,
            optional=True,
            remedy="leave it None for no limit",
        )

    def observation(self, state: Any) -> Any:
        """Returns the observation of `state`, both nests of tensors `[B, ...]`."""
        return state if self.observe is None else self.observe(state)

    def _check_callable(self, name: str, is_optional: bool) -> None:
        value = getattr(self, name)
        if callable(value) or (is_optional and value is None):
            return
        raise TypeError(
            f"{name}: got {value!r} of type {type(value).__name__}, expected a "
            "function; see Dynamics for its arguments and result."
        )

    def _check_spec(self, name: str) -> None:
        for leaf in tf.nest.flatten(getattr(self, name)):
            if not isinstance(leaf, tf.TensorSpec):
                raise TypeError(
                    f"{name}: got {leaf!r} of type {type(leaf).__name__} in the nest, "
                    "expected tensor specs; convert it with tensor_spec.from_spec."
                )


class GymnasiumRenderer:
    """Draws a state with the renderer of a Gymnasium environment.

    The first call imports Gymnasium and pygame and makes the environment.
    """

    def __init__(self, environment_name: str):
        """Stores the name; makes nothing yet.

        Args:
          environment_name: The registered name, such as "CartPole-v1". The states to
            draw must have the layout of that environment's attribute `state`.
        """
        self._environment_name = environment_name
        self._gym_env: Any = None

    def __call__(self, state: np.ndarray) -> np.ndarray:
        """Returns the picture of one state, uint8 `[height, width, 3]`."""
        if self._gym_env is None:
            from tfrl.environments import suite_gym

            environment: Any = suite_gym.load(self._environment_name)
            self._gym_env = environment.gym.unwrapped
            self._gym_env.reset(seed=0)
        self._gym_env.state = np.asarray(state, np.float64)
        return self._gym_env.render()


def discretize_actions(dynamics: Dynamics, num_actions: Any) -> Dynamics:
    """Offers evenly spaced values for each element of a continuous action.

    The discrete action is int32 and has the shape of the continuous one, except that a
    continuous action of shape `(1,)` becomes a scalar, as with
    `wrappers.ActionDiscretizeWrapper`.

    Args:
      dynamics: The dynamics, whose actions are a single tensor with finite bounds.
      num_actions: The number of values of each element, at least 2: one number, or an
        array that broadcasts to the shape of the action.

    Raises:
      ValueError: If `dynamics` has other actions, or `num_actions` is below 2, not an
        integer or of a shape that does not broadcast.
    """
    continuous_spec = dynamics.action_spec
    spec, values, offsets = action_specs.divide(
        tensor_spec.to_nest_array_spec(continuous_spec), num_actions
    )
    shape = tree.flatten(continuous_spec)[0].shape

    def step(state: Any, action: tf.Tensor, random: tf.Tensor) -> Outcome:
        bins = tf.reshape(action, [-1, len(offsets)]) + offsets
        continuous = tf.reshape(tf.gather(values, bins), [action.shape[0], *shape])
        continuous = tree.unflatten_as(continuous_spec, [continuous])
        return dynamics.step(state, continuous, random)

    return dataclasses.replace(
        dynamics, step=step, action_spec=tensor_spec.from_spec(spec)
    )
