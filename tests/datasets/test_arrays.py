"""Recorded steps in the dictionaries of D4RL and d3rlpy."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import datasets
from tfrl.specs import tensor_spec
from tfrl.trajectories import trajectory

STEPS = np.arange(6, dtype=np.float64)
D4RL = {
    "observations": STEPS[:, None],
    "actions": np.ones((6, 2), np.float32),
    "rewards": STEPS + 0.5,
    "terminals": np.array([0, 0, 1, 0, 0, 0], bool),
    "timeouts": np.array([0, 0, 0, 0, 1, 0], bool),
    "infos/qpos": np.zeros((6, 3)),
}


def frames_of(arrays, spec=None):
    return list(datasets.load_arrays(arrays, spec).as_numpy_iterator())


def test_an_episode_ends_with_a_terminal_a_timeout_or_the_data():
    frames = frames_of(D4RL)
    # Without next observations, the steps before the timeout and the end are left out.
    assert [int(x.step_type) for x in frames] == [0, 1, 1, 2, 0, 2]
    assert [int(x.next_step_type) for x in frames] == [1, 1, 2, 0, 2, 0]
    assert [float(x.reward) for x in frames] == [0.5, 1.5, 2.5, 0, 3.5, 0]
    assert [float(x.discount) for x in frames] == [1, 1, 0, 1, 1, 1]
    assert [float(x.observation[0]) for x in frames] == [0, 1, 2, 2, 3, 4]
    assert frames[0].observation.dtype == np.float32


def test_next_observations_end_a_truncated_episode():
    frames = frames_of({**D4RL, "next_observations": STEPS[:, None] + 10})
    assert [int(x.step_type) for x in frames] == [0, 1, 1, 2, 0, 1, 2, 0, 2]
    assert [float(x.discount) for x in frames] == [1, 1, 0, 1, 1, 1, 1, 1, 1]
    assert [float(x.observation[0]) for x in frames] == [0, 1, 2, 12, 3, 4, 14, 5, 15]


def test_names_may_be_singular_and_observations_nested():
    nested = {"a": STEPS, "b": np.zeros((6, 2, 2), np.uint8)}
    arrays = {
        "observation": nested,
        "action": np.arange(6),
        "reward": STEPS[:, None],
        "terminated": D4RL["terminals"][:, None],
        "truncated": D4RL["timeouts"],
    }
    frames = frames_of(arrays)
    assert [float(x.observation["a"]) for x in frames] == [0, 1, 2, 2, 3, 4]
    assert frames[0].observation["b"].shape == (2, 2)
    assert [float(x.reward) for x in frames] == [0, 1, 2, 0, 3, 0]


@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        ([1, 2], TypeError, "data: got a list, expected the name of files, or a dict"),
        ({"observations": STEPS}, ValueError, "'observations', without actions; give "),
        ({**D4RL, "rewards": STEPS[:5]}, ValueError, "different lengths, observations"),
        (
            {name: array[:1] for name, array in D4RL.items()},
            ValueError,
            "got 1 steps, of which none has an observation after it",
        ),
        ({**D4RL, "time_outs": STEPS}, ValueError, "'time_outs'.* mean 'timeouts'[?]"),
        ({**D4RL, "masks": STEPS}, ValueError, "array 'masks', .*; leave it out"),
        (
            {**D4RL, "done": D4RL["terminals"]},
            ValueError,
            "both 'terminals' and 'done', expected one of them for terminals",
        ),
        ({**D4RL, "terminals": STEPS / 10}, ValueError, "data: terminals: got 0.1, ex"),
        ({**D4RL, "timeouts": STEPS * np.nan}, ValueError, "timeouts: got nan, expec"),
        (
            {**D4RL, "terminals": np.zeros((6, 2))},
            ValueError,
            r"terminals: got an array of shape \(6, 2\), expected True or False",
        ),
        (
            {**D4RL, "rewards": 1.0},
            ValueError,
            "rewards of 1 lengths, expected one row",
        ),
        (
            {**D4RL, "timeouts": 0},
            ValueError,
            r"timeouts: got an array of shape \(\), expected True or False",
        ),
        (
            {**D4RL, "observations": [[1, 2], [1]]},
            ValueError,
            "data: observations: got rows of several shapes, or no numbers",
        ),
        (
            {**D4RL, "actions": ["left"] * 6},
            ValueError,
            "data: actions: got rows of several shapes, or no numbers",
        ),
        (
            {**D4RL, "next_observations": np.zeros((6, 3))},
            ValueError,
            r"next_observations of shape \(3,\) a step, expected \(1,\)",
        ),
    ],
)
def test_wrong_arrays_are_named(arrays, error, message):
    with pytest.raises(error, match=message):
        frames_of(arrays)


ONE = {
    "observations": np.zeros((3, 1), np.float32),
    "actions": np.array([0, 1, 1]),
    "rewards": [1.0, 2.0, 3.0],
    "done": [0, 0, 1],
}
SPEC = trajectory.Trajectory(
    step_type=tf.TensorSpec((), tf.int32),
    observation=tf.TensorSpec((1,), tf.float32),
    action=tensor_spec.BoundedTensorSpec((), tf.int64, 0, 1),
    policy_info=(),
    next_step_type=tf.TensorSpec((), tf.int32),
    reward=tf.TensorSpec((), tf.float32),
    discount=tf.TensorSpec((), tf.float32),
)


def test_lists_are_arrays_and_done_is_a_terminal():
    frames = frames_of(ONE, SPEC)
    assert [float(x.reward) for x in frames] == [1, 2, 3, 0]
    assert float(frames[2].discount) == 0


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"actions": np.array([-0.9, 0.4, 1.7])}, "action: got -0.9, expected integ"),
        ({"actions": np.array([1, 2, 1])}, r"action: got 2 at index \[1\], expected"),
        (
            {"rewards": [1.0, np.nan, 0.0]},
            r"reward: got NaN at index \[1\], expected f",
        ),
        ({"observations": np.full((3, 1), np.inf)}, "observation: got inf"),
        (
            {"observations": np.zeros((3, 2))},
            r"observation: got shape \(2,\) a step, expected \(1,\); build",
        ),
    ],
)
def test_numbers_that_no_agent_can_learn_from_are_refused(changed, problem):
    with pytest.raises(ValueError, match=problem):
        frames_of({**ONE, **changed}, SPEC)


def test_actions_are_within_bounds_and_observations_need_not_be():
    bounds = tensor_spec.BoundedTensorSpec((2,), tf.float32, [-2, 0], [2, 1])
    spec = SPEC._replace(
        action=bounds,
        observation=tensor_spec.BoundedTensorSpec((1,), tf.float32, -1, 1),
    )
    actions = np.array([[-2, 0], [2.00001, 1], [0, 0.5]])
    arrays = {**ONE, "actions": actions, "observations": np.full((3, 1), 9.0)}
    assert len(frames_of(arrays, spec)) == 4  # Rounding may take an action over.
    with pytest.raises(
        ValueError, match=r"action: got -20.0 at .*-2.0.*, 2.0.*; scale"
    ):
        frames_of({**arrays, "actions": 10 * actions}, spec)
