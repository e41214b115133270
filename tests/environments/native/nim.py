"""A game of two players, whose best moves are known."""

import tensorflow as tf

from tfrl.environments import native
from tfrl.environments.native import self_play
from tfrl.specs import tensor_spec

BEGINS = 5


def nim(moves_of_other=1):
    """Takes one or two of five stones; who takes the last one has won.

    The state is the stones, the player who moves, and the moves left of this turn; the
    other player has `moves_of_other` moves in a turn. Player 0 begins if the random
    number is below a half.
    """

    def initial(random):
        player = tf.cast(random[:, 0] >= 0.5, tf.int32)
        turn = tf.where(player == 1, moves_of_other, 1)
        return tf.stack([tf.fill(player.shape, BEGINS), player, turn], 1)

    def step(state, action, random):
        del random
        left = tf.maximum(state[:, 0] - action - 1, 0)
        player, turn = state[:, 1], state[:, 2] - 1
        reward = tf.where(left == 0, tf.where(player == 0, 1.0, -1.0), 0.0)
        after = tf.where(turn == 0, 1 - player, player)
        turns = tf.where(after == 1, moves_of_other, 1)
        turn = tf.where(turn == 0, turns, turn)
        return native.Outcome(tf.stack([left, after, turn], 1), reward, left == 0)

    def observe(state):
        mask = tf.stack([state[:, 0] > 0, state[:, 0] > 1], 1)
        return {
            "stones": state[:, 0],
            self_play.PLAYER: state[:, 1],
            "action_mask": mask,
        }

    return native.Dynamics(
        initial=initial,
        step=step,
        observe=observe,
        observation_spec={
            "stones": tensor_spec.BoundedTensorSpec([], tf.int32, 0, BEGINS),
            self_play.PLAYER: tf.TensorSpec([], tf.int32),
            "action_mask": tf.TensorSpec([2], tf.bool),
        },
        action_spec=tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1),
        num_initial_randoms=1,
    )
