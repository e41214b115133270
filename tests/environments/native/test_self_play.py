import numpy as np
import pytest
import tensorflow as tf

from tests.environments.native.nim import nim
from tfrl.environments import native
from tfrl.environments.native import self_play
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step


class Chosen:
    """A policy that always takes the same number of stones."""

    policy_state_spec = ()

    def __init__(self, action, name="weight"):
        self.weight = tf.Variable(float(action), name=name)

    def variables(self):
        return [self.weight]

    def distribution(self, time_step, policy_state=()):
        size = time_step.observation["stones"].shape

        class Fixed:
            def sample(_, seed):
                assert seed.shape == [2]
                return tf.cast(tf.fill(size, self.weight), tf.int64)

        return policy_step.PolicyStep(Fixed(), policy_state)


def random(*first):
    """Random numbers of members, the first of which say who begins."""
    return tf.constant([[x, 0.25, 0.5] for x in first])


def joined(*actions):
    opponents = native.Opponents()
    opponents.join([Chosen(action) for action in actions])
    return opponents


def test_the_learner_always_moves_and_does_not_see_the_player():
    game = self_play.of_game(nim(), joined(1, 1, 1))
    assert set(game.observation_spec) == {"stones", "action_mask"}
    state = game.initial(random(0.1, 0.9))
    # The other player has begun in the second member, and has taken two.
    assert state.numpy().tolist() == [[5, 0, 1], [3, 0, 1]]
    seen = game.observation(state)
    assert seen["stones"].numpy().tolist() == [5, 3]
    assert "player" not in seen


def test_rewards_are_the_learners_whoever_moves_last():
    game = self_play.of_game(nim(), joined(1, 1, 1))
    state = game.initial(random(0.1, 0.9))
    # 5 - 2 - 2 leaves 1; 3 - 1 leaves 2, which the other player takes, and wins.
    after = game.step(state, tf.constant([1, 0]), tf.constant([[0.5, 0.5]] * 2))
    assert after.state[:, 0].numpy().tolist() == [1, 0]
    assert after.reward.numpy().tolist() == [0, -1]
    assert after.terminated.numpy().tolist() == [False, True]
    last = game.step(after.state, tf.constant([0, 0]), tf.constant([[0.5, 0.5]] * 2))
    assert last.reward.numpy()[0] == 1
    assert last.terminated.numpy()[0]


def test_the_other_player_moves_as_often_as_its_turn_has_moves():
    game = self_play.of_game(nim(moves_of_other=3), joined(0, 0, 0))
    state = game.initial(random(0.1, 0.9))
    assert state.numpy().tolist() == [[5, 0, 1], [2, 0, 1]]
    after = game.step(state, tf.constant([0, 0]), tf.constant([[0.5, 0.5]] * 2))
    assert after.state[:, 0].numpy().tolist() == [1, 0]
    assert after.reward.numpy().tolist() == [0, -1]  # The second ended at its first.


def test_without_policies_all_legal_actions_are_equally_likely():
    game = self_play.of_game(nim())
    firsts = tf.fill([4_000, 1], 0.9)
    stones = game.initial(tf.concat([firsts, tf.random.uniform([4_000, 2])], 1))[:, 0]
    assert set(stones.numpy()) == {3, 4}
    assert abs(np.mean(stones.numpy() == 3) - 0.5) < 0.04
    one = tf.constant([[2, 0, 1]])
    after = game.step(one, tf.constant([0]), tf.constant([[0.3, 0.6]]))
    assert after.reward.numpy().tolist() == [-1]  # Only one stone could be taken.


def test_members_that_need_no_restart_are_left():
    game = self_play.of_game(nim(), joined(1, 1, 1))
    state = tf.constant([[1, 0, 1], [0, 1, 1]])
    needed = tf.constant([False, True])
    begun = game.restart(state, needed, random(0.9, 0.9))
    assert begun.numpy().tolist() == [[1, 0, 1], [3, 0, 1]]


@pytest.mark.parametrize(
    ("members", "policies", "expected"),
    [
        (8, 5, [0, 0, 0, 0, 1, 2, 3, 4]),
        (8, 3, [0, 0, 0, 0, 1, 1, 2, 2]),
        (5, 4, [0, 0, 0, 1, 2]),
        (1, 3, [0]),
    ],
)
def test_the_newest_policy_plays_half_of_the_members(members, policies, expected):
    opponents = joined(*range(policies))
    assert opponents.places(members).tolist() == expected
    seen = {
        "stones": tf.fill([members], 5),
        "action_mask": tf.fill([members, 2], True),
    }
    actions = opponents.act(seen, tf.constant([1, 2]))
    assert actions.numpy().tolist() == expected  # Policy i chooses action i.


def test_a_copy_has_the_weights_and_the_rating():
    opponents, policy = joined(0, 0, 1), Chosen(1)
    opponents.copy(policy, 1, 250.0)
    assert [x.weight.numpy() for x in opponents.policies] == [0, 1, 1]
    assert opponents.ratings.numpy().tolist() == [0, 250, 0]
    assert any(x is opponents.ratings for x in opponents.variables)


def test_a_program_reads_the_weights_that_opponents_have_now():
    opponents = joined(0, 0, 0)
    dynamics = self_play.of_game(nim(), opponents)
    environment = native.NativeEnvironment(dynamics, 16, seed=0)
    stones = environment.reset().observation["stones"].numpy()
    assert set(stones) == {4, 5}
    opponents.copy(Chosen(1), 0, 0.0)
    stones = environment.reset().observation["stones"].numpy()
    assert set(stones[:8]) == {3, 5}
    assert set(stones[8:]) == {4, 5}


def test_the_same_game_can_be_played_against_others():
    game = self_play.of_game(nim())
    assert game.opponents is None
    opponents = joined(1, 1, 1)
    against = game.against(opponents)
    assert against.opponents is opponents
    assert against.initial(random(0.9))[0, 0] == 3
    assert self_play.is_game(nim())
    assert not self_play.is_game(game)


def test_wrong_opponents_are_refused():
    with pytest.raises(ValueError, match="policies: got 1, expected at least three"):
        joined(0)
    with_state = Chosen(0)
    with_state.policy_state_spec = [tf.TensorSpec([4], tf.float32)]
    with pytest.raises(ValueError, match=r"policies with a state.*lstm_size=0"):
        native.Opponents().join([with_state] * 3)


@pytest.mark.parametrize("how", ["loop", "branch"])
def test_random_operations_inside_of_control_flow_are_found(how):
    def inside(state):
        return state + tf.random.uniform(state.shape, maxval=2, dtype=tf.int32)

    def step(state, action, random):
        del action, random
        if how == "loop":
            _, state = tf.while_loop(
                lambda i, _: i < 2, lambda i, x: (i + 1, inside(x)), (0, state)
            )
        else:
            state = tf.cond(state[0, 0] > 1, lambda: inside(state), lambda: state)
        none = tf.zeros(state.shape[:1])
        return native.Outcome(state, none, none > 1)

    dynamics = native.Dynamics(
        initial=lambda random: tf.zeros([random.shape[0], 1], tf.int32),
        step=step,
        observation_spec=tf.TensorSpec([1], tf.int32),
        action_spec=tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1),
        num_initial_randoms=1,
    )
    with pytest.raises(ValueError, match=r"step: got the operations RandomUniformInt"):
        native.NativeEnvironment(dynamics, 2)
