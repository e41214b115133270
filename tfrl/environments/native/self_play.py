"""Games of two players, one of whom learns while earlier policies play the other.

A game is `Dynamics` whose observation is that of the player who moves. `of_game` makes
dynamics of it in which the learner always moves: what the other player does until then
is a part of the step, computed by the same program.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.environments.native.dynamics import Dynamics, Outcome
from tfrl.trajectories import time_step as ts
from tfrl.utils import nest_utils

# The part of a game's observation that is the number of the player who moves; the
# learner is 0.
PLAYER = "player"
_MASK = "action_mask"
_SEED = 2  # Random numbers in a seed.
_RANGE = 2**24  # Exact in float32.


class Opponents(tf.Module):
    """The policies that play the other player, each with a rating.

    The first plays half of the members of a batch, and the others an equal share of the
    rest. Until there are policies, all legal actions are equally likely.

    Attributes:
      policies: The policies.
      ratings: Their ratings on Elo's scale, float32 `[K]`.
    """

    def __init__(self) -> None:
        """Creates opponents without policies."""
        super().__init__(name="opponents")
        self.policies: list[Any] = []
        self.ratings: Any = None

    def join(self, policies: Sequence[Any]) -> None:
        """Lets policies play from now on, in programs that are traced later.

        Args:
          policies: Policies whose `distribution` gives one choice, and without a state.

        Raises:
          ValueError: There are fewer than three policies, or they have a state.
        """
        if len(policies) < 3:
            raise ValueError(
                f"policies: got {len(policies)}, expected at least three: the newest, "
                "an earlier one, and the first."
            )
        if tf.nest.flatten(policies[0].policy_state_spec):
            raise ValueError(
                "policies: got policies with a state, such as an LSTM's, expected some "
                "without, since a game's other player has no memory; leave out the "
                "LSTM (lstm_size=0)."
            )
        self.policies = list(policies)
        self.ratings = tf.Variable(
            tf.zeros([len(policies)]), trainable=False, name="ratings"
        )

    def places(self, batch_size: int) -> np.ndarray:
        """Returns which policy plays each member, ints `[B]` that never fall."""
        first = batch_size - batch_size // 2
        others = max(len(self.policies) - 1, 1)
        rest = 1 + np.arange(batch_size // 2) * others // max(batch_size // 2, 1)
        return np.concatenate([np.zeros(first, np.int64), rest])

    def copy(self, policy: Any, place: int, rating: float) -> None:
        """Gives a policy's weights and rating to the one in a place."""
        given, own = policy.variables(), self.policies[place].variables()
        for variable, value in zip(own, given, strict=True):
            variable.assign(value)
        self.ratings[place].assign(rating)

    def act(self, seen: Any, seed: tf.Tensor) -> tf.Tensor:
        """Returns the actions of the player who moves, int32 `[B]`.

        Args:
          seen: The observation, a dict of tensors `[B, ...]` with the mask of actions.
          seed: Two int32 numbers.
        """
        if not self.policies:
            uniform = tf.random.stateless_uniform(seen[_MASK].shape, seed)
            return tf.argmax(
                tf.where(seen[_MASK], uniform, -1.0), -1, output_type=tf.int32
            )
        places, actions = self.places(seen[_MASK].shape[0]), []
        for place, policy in enumerate(self.policies):
            [rows] = np.nonzero(places == place)
            if not len(rows):
                continue
            part = {name: x[rows[0] : rows[-1] + 1] for name, x in seen.items()}
            size = [len(rows)]
            time_step = ts.TimeStep(
                tf.fill(size, ts.StepType.MID), tf.zeros(size), tf.ones(size), part
            )
            chosen = policy.distribution(time_step, ()).action
            drawn = chosen.sample(seed=seed + np.array([0, place + 1], np.int32))
            actions.append(tf.cast(drawn, tf.int32))
        return tf.concat(actions, 0)


def is_game(dynamics: Dynamics) -> bool:
    """Whether dynamics are those of a game that `of_game` takes."""
    spec = dynamics.observation_spec
    return isinstance(spec, dict) and PLAYER in spec


def of_game(game: Dynamics, opponents: Opponents | None = None) -> Dynamics:
    """Returns dynamics in which the learner plays a game of two players.

    Args:
      game: The game. Its observation is a dict: the number of the player who moves, 0
        for the learner, the mask of that player's actions, and what that player sees.
        Its reward is the learner's.
      opponents: Who plays the other player; None for equally likely legal actions.
    """
    others = Opponents() if opponents is None else opponents

    def observe(state: Any) -> Any:
        seen = game.observation(state)
        return {name: x for name, x in seen.items() if name != PLAYER}

    def answer(state: Any, is_on: tf.Tensor, seed: tf.Tensor) -> Outcome:
        """Lets the other player move in members whose game goes on."""

        def waits(state: Any, is_on: tf.Tensor) -> tf.Tensor:
            return is_on & (game.observation(state)[PLAYER] != 0)

        def move(
            count: tf.Tensor,
            state: Any,
            is_on: tf.Tensor,
            reward: tf.Tensor,
            terminated: tf.Tensor,
            truncated: tf.Tensor,
        ) -> tuple[Any, ...]:
            moves, size = waits(state, is_on), is_on.shape[0]
            action_seed = seed + tf.stack([count, 0])
            random = tf.random.stateless_uniform(
                [size, game.num_step_randoms], seed + tf.stack([count, -1])
            )
            after = game.step(state, others.act(observe(state), action_seed), random)
            ended, cut = (moves & x for x in _ends(after))
            return (
                count + 1,
                nest_utils.where(moves, after.state, state),
                is_on & ~(ended | cut),
                reward + tf.where(moves, after.reward, 0.0),
                terminated | ended,
                truncated | cut,
            )

        none = tf.zeros_like(is_on)
        _, state, _, *rest = tf.while_loop(
            lambda *now: tf.reduce_any(waits(now[1], now[2])),
            move,
            (0, state, is_on, tf.zeros(is_on.shape), none, none),
        )
        return Outcome(state, *rest)

    def initial(random: tf.Tensor) -> Any:
        own, seed = _split(random, game.num_initial_randoms)
        is_on = tf.fill([random.shape[0]], True)
        return answer(game.initial(own), is_on, seed).state

    def restart(state: Any, needed: tf.Tensor, random: tf.Tensor) -> Any:
        own, seed = _split(random, game.num_initial_randoms)
        if game.restart is None:
            begun = nest_utils.where(needed, game.initial(own), state)
        else:
            begun = game.restart(state, needed, own)
        return answer(begun, needed, seed).state

    def step(state: Any, action: tf.Tensor, random: tf.Tensor) -> Outcome:
        own, seed = _split(random, game.num_step_randoms)
        mine = game.step(state, action, own)
        ended, cut = _ends(mine)
        theirs = answer(mine.state, ~(ended | cut), seed)
        return Outcome(
            theirs.state,
            mine.reward + theirs.reward,
            ended | theirs.terminated,
            cut | theirs.truncated,
        )

    spec = game.observation_spec
    return dataclasses.replace(
        game,
        initial=initial,
        restart=restart,
        step=step,
        observe=observe,
        observation_spec={name: x for name, x in spec.items() if name != PLAYER},
        num_initial_randoms=game.num_initial_randoms + _SEED,
        num_step_randoms=game.num_step_randoms + _SEED,
        opponents=opponents,
        against=functools.partial(of_game, game),
    )


def _ends(outcome: Outcome) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns which members have terminated, and which were truncated."""
    if outcome.truncated is None:
        return outcome.terminated, tf.zeros_like(outcome.terminated)
    return outcome.terminated, outcome.truncated


def _split(random: tf.Tensor, own: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the numbers of the game's own, and a seed made of the others."""
    return random[:, :own], tf.cast(random[0, own:] * _RANGE, tf.int32)
