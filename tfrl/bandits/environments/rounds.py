"""Bandits as pure functions: how a round is drawn, and how the world drifts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrl.environments import native
from tfrl.specs.tensor_spec import BoundedTensorSpec
from tfrl.utils.random_numbers import seeds


class Round(NamedTuple):
    """A round of each member of a batch, before the action.

    Attributes:
      observation: What the agent sees, a nest `[B, ...]`.
      means: The expected reward of each arm, float32 `[B, A]`; arms that are padding
        have the least number of the dtype.
      deviations: The standard deviation of each arm's reward, float32 `[B, A]`, or a
        shape that broadcasts to it.
    """

    observation: Any
    means: tf.Tensor
    deviations: tf.Tensor


@dataclasses.dataclass(frozen=True)
class World:
    """What changes from round to round, the same for all members of a batch.

    Attributes:
      num_randoms: The number of random numbers of each function.
      initial: `initial(random) -> world`; `random` is float32 `[num_randoms]`, uniform
        in [0, 1), and the world is a tensor.
      advance: `advance(world, random) -> world` for the next round.
    """

    num_randoms: int
    initial: Callable[[tf.Tensor], tf.Tensor]
    advance: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


def probabilities(name: str, values: Any) -> np.ndarray:
    """Returns an argument as probabilities, float32.

    Raises:
      ValueError: A number is not in [0, 1].
    """
    found = np.asarray(values, np.float32)
    wrong = np.argwhere(~((found >= 0) & (found <= 1)))
    if len(wrong):
        raise ValueError(
            f"{name}{wrong[0].tolist()}: got {found[tuple(wrong[0])]}, expected a "
            "probability. All parameters should be floats in [0, 1]."
        )
    return found


_STILL = World(0, lambda _: tf.zeros([1]), lambda world, _: world)


def dynamics(
    draw: Callable[[tf.Tensor, tf.Tensor], Round],
    observation_spec: Any,
    num_actions: int,
    num_randoms: int,
    *,
    world: World | None = None,
    has_binary_rewards: bool = False,
) -> native.Dynamics:
    """Returns the dynamics of a bandit, for a `native.NativeEnvironment`.

    The state is a dictionary of the round and of `regret`, float32 `[B]`: by how much
    the expected reward of the last action was below the largest one.

    Args:
      draw: `draw(random, world) -> Round` draws a round; `random` is float32 `[B,
        num_randoms]`, uniform in [0, 1).
      observation_spec: The nest of specs of an observation.
      num_actions: The number of arms, `A`.
      num_randoms: The number of random numbers of a round, for each member.
      world: What changes; None if nothing does, and `draw` then gets zeros.
      has_binary_rewards: Whether rewards are 1 with the probability that is the mean,
        and otherwise 0; if not, they are normal.
    """
    world = world or _STILL

    def state_of(now: tf.Tensor, random: tf.Tensor, regret: tf.Tensor) -> Any:
        drawn = draw(random, now)
        deviations = tf.broadcast_to(drawn.deviations, drawn.means.shape)
        drawn = drawn._replace(deviations=deviations)
        size = random.shape[0]
        everywhere = tf.broadcast_to(now[tf.newaxis], [size, *now.shape])
        return {"world": everywhere, "regret": regret, "round": drawn}

    def initial(random: tf.Tensor) -> Any:
        now = world.initial(random[0, num_randoms:])
        zeros = tf.zeros([random.shape[0]])
        return state_of(now, random[:, :num_randoms], zeros)

    def step(state: Any, action: tf.Tensor, random: tf.Tensor) -> native.Outcome:
        last = state["round"]
        mean = tf.gather(last.means, action, batch_dims=1)
        if has_binary_rewards:
            reward = tf.cast(random[:, -1] < mean, tf.float32)
        else:
            deviation = tf.gather(last.deviations, action, batch_dims=1)
            reward = mean + deviation * seeds.normal_of(random[:, -1])
        now = world.advance(state["world"][0], random[0, num_randoms:-1])
        regret = tf.reduce_max(last.means, axis=1) - mean
        return native.Outcome(
            state_of(now, random[:, :num_randoms], regret),
            reward,
            terminated=tf.ones_like(reward, tf.bool),
        )

    return native.Dynamics(
        initial=initial,
        step=step,
        observation_spec=observation_spec,
        action_spec=BoundedTensorSpec([], tf.int32, 0, num_actions - 1, name="action"),
        num_initial_randoms=num_randoms + world.num_randoms,
        num_step_randoms=num_randoms + world.num_randoms + 1,
        observe=lambda state: state["round"].observation,
        is_bandit=True,
    )
