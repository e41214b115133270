"""A callback that keeps earlier policies as opponents, and rates the policy by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.environments import native
from tfrl.eval import elo
from tfrl.train.runs import callbacks
from tfrl.utils import number_checks


class SelfPlay(callbacks.Callback):
    """Makes the learner's earlier policies its opponents, and rates it by them.

    The opponents are the newest policy, which plays half of the members, earlier ones,
    and, as the last, the policy before training, whose rating is 0. At each interval,
    the policy plays a number of games against all of them, and gets the rating that
    makes the results most likely. Its weights then become the newest opponent's, and
    replace those of an earlier one that is drawn: so the ages of opponents are spread
    over the run.

    The log has the rating as `elo`, and checkpoints hold the opponents and ratings.
    """

    def __init__(
        self,
        environment: native.NativeEnvironment,
        policy: Any,
        interval: int,
        *,
        num_games: int = 256,
        seed: int = 0,
    ) -> None:
        """Creates the callback.

        Args:
          environment: The environment to train in, whose dynamics have opponents that
            have joined.
          policy: The policy that trains, of the same kind as the opponents'.
          interval: The iterations from one rating to the next.
          num_games: The games of a rating, half of them against the newest opponent.
          seed: Seeds the games and the draws.

        Raises:
          ValueError: The environment has no opponents, or a number is out of range.
        """
        opponents = environment.dynamics.opponents
        if opponents is None or not opponents.policies:
            raise ValueError(
                "environment: got one without opponents, expected the environment of "
                "a game whose Opponents have joined."
            )
        most = len(opponents.policies)
        number_checks.check_integer(
            "num_games", num_games, 2 * most, remedy="play each opponent at least once"
        )
        number_checks.check_integer("interval", interval, 1, remedy="give iterations")
        self.interval = interval
        self._opponents, self._policy, self._seed = opponents, policy, seed
        self._games = native.NativeEnvironment(environment.dynamics, num_games, seed)
        self._places = opponents.places(num_games)
        self._play = tf.function(self._returns, autograph=False)
        self._rating = tf.Variable(0.0, trainable=False, name="rating")
        self.saved_state = tf.Module(name="self_play")
        self.saved_state.opponents = opponents
        self.saved_state.rating = self._rating
        self.logged_metrics = {"elo": lambda: float(self._rating.numpy())}

    def on_start(self, iteration: int) -> None:
        """Gives a new run's first policy to all opponents."""
        if not iteration:
            for place in range(len(self._opponents.policies)):
                self._opponents.copy(self._policy, place, 0.0)

    def on_interval(self, iteration: int) -> None:
        """Rates the policy, and makes it an opponent."""
        self._games.seed(self._seed + iteration)
        scores = np.clip(np.sign(self._play().numpy()) / 2 + 0.5, 0.0, 1.0)
        games = np.bincount(self._places)
        points = np.bincount(self._places, scores)
        ratings = self._opponents.ratings.numpy()
        rating = elo.performance(points.tolist(), games.tolist(), ratings.tolist())
        self._rating.assign(rating)
        draw = np.random.default_rng([self._seed, iteration])
        for place in (0, int(draw.integers(1, len(ratings) - 1))):
            self._opponents.copy(self._policy, place, rating)

    def _returns(self) -> tf.Tensor:
        """Plays a game in each member; returns the returns, `[B]`."""
        environment, policy = self._games, self._policy
        size = len(self._places)

        def play(time_step: Any, returns: tf.Tensor, is_over: tf.Tensor) -> Any:
            action = policy.action(time_step, ()).action
            time_step = environment.step(action)
            returns += tf.where(is_over, 0.0, time_step.reward)
            return time_step, returns, is_over | time_step.is_last()

        return tf.while_loop(
            lambda *now: ~tf.reduce_all(now[-1]),
            play,
            (environment.reset(), tf.zeros([size]), tf.fill([size], False)),
        )[1]
