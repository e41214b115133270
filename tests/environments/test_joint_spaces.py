import numpy as np
import pytest
from gymnasium import spaces

from tfrl.environments import joint_spaces
from tfrl.environments.joint_spaces import JointSpaces


def box(size, low=-1.0, high=1.0):
    return spaces.Box(low, high, (size,), np.float32)


def test_equal_spaces_stay_as_they_are():
    joint = JointSpaces([box(3)] * 2, [spaces.Discrete(4)] * 2)
    assert joint.observation_space == box(3)
    assert joint.action_space == spaces.Discrete(4)
    seen = np.float32([1, 2, 3])
    assert joint.observation(1, seen) is seen
    assert joint.action(1, 3) == 3


def test_different_spaces_are_padded_with_masks_and_numbers():
    joint = JointSpaces([box(2), box(3)], [spaces.Discrete(2), spaces.Discrete(4)])
    assert joint.action_space == spaces.Discrete(4)
    found = joint.observation(0, np.float32([0.5, -0.5]))
    np.testing.assert_array_equal(found["observation"], [0.5, -0.5, 0])
    np.testing.assert_array_equal(found["agent"], [1, 0])
    np.testing.assert_array_equal(found["action_mask"], [1, 1, 0, 0])
    assert joint.observation_space.contains(found)
    second = joint.observation(1, np.float32([0, 0, 1]))
    np.testing.assert_array_equal(second["agent"], [0, 1])
    np.testing.assert_array_equal(second["action_mask"], [1, 1, 1, 1])
    # A program that does not know the mask takes the nearest legal action.
    assert [joint.action(0, x) for x in (0, 1, 3)] == [0, 1, 1]


def test_padded_bounds_hold_all_agents_numbers():
    joint = JointSpaces(
        [box(1, 2.0, 3.0), box(2, -1.0, 1.0)], [box(1, 0.0, 1.0), box(2, 5.0, 6.0)]
    )
    np.testing.assert_array_equal(joint.observation_space["observation"].low, [-1, -1])
    np.testing.assert_array_equal(joint.observation_space["observation"].high, [3, 1])
    # The second number is of the second agent's action alone.
    np.testing.assert_array_equal(joint.action_space.low, [0, 5])
    np.testing.assert_array_equal(joint.action_space.high, [6, 6])
    np.testing.assert_array_equal(joint.action(0, np.float32([0.5, 5.5])), [0.5])


def test_critics_see_the_state_and_the_agents_number():
    joint = JointSpaces([box(2)] * 2, [spaces.Discrete(2)] * 2, state_size=3)
    found = joint.observation(1, np.float32([1, 2]), np.float32([7, 8, 9]))
    assert found.keys() == {"observation", "critic_observation"}
    np.testing.assert_array_equal(found["critic_observation"], [7, 8, 9, 0, 1])
    assert joint.observation_space["critic_observation"].shape == (5,)


def test_parts_are_added_to_dicts():
    seen = spaces.Dict({"position": box(2), "action_mask": spaces.MultiBinary(3)})
    joint = JointSpaces([seen] * 2, [spaces.Discrete(3)] * 2, sees_number=True)
    given = {"position": np.float32([0, 1]), "action_mask": np.int8([0, 1, 0])}
    found = joint.observation(0, given)
    assert found.keys() == {"position", "action_mask", "agent"}
    assert joint.observation_space.contains(found)


@pytest.mark.parametrize(
    ("observations", "actions", "error"),
    [
        ([box(2), spaces.Discrete(2)], [box(1)] * 2, "observation_spaces: got Box"),
        ([box(2)] * 2, [box(1), spaces.Discrete(2)], "action_spaces: got Box"),
        (
            [box(2)] * 2,
            [spaces.Discrete(2), spaces.Discrete(2, start=1)],
            "action_spaces: got Discrete",
        ),
    ],
)
def test_spaces_of_different_kinds_are_refused(observations, actions, error):
    with pytest.raises(ValueError, match=error):
        JointSpaces(observations, actions)


def test_names_that_are_added_are_refused_in_dicts():
    seen = spaces.Dict({"agent": box(2)})
    with pytest.raises(ValueError, match=r"\['agent'\]"):
        JointSpaces([seen] * 2, [box(1)] * 2, sees_number=True)


def test_a_mask_of_somebody_who_waits_allows_everything():
    found = joint_spaces.mended_mask({"action_mask": np.int8([0, 0])})
    np.testing.assert_array_equal(found["action_mask"], [1, 1])
    some = np.int8([0, 1])
    assert joint_spaces.mended_mask({"action_mask": some})["action_mask"] is some
