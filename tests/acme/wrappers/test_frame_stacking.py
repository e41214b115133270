import numpy as np
import pytest
from dm_env import specs

from tests.acme.wrappers.scripted import Scripted, play
from tfrl.acme import wrappers
from tfrl.environments import HistoryWrapper, py_to_dm_wrapper, test_envs


def test_frames_are_stacked_behind_zeros_the_newest_last():
    inner = Scripted([0.0] * 4, observations=[np.float64(10 + i) for i in range(5)])
    environment = wrappers.FrameStackingWrapper(inner, num_frames=3)
    stacks = [t.observation.tolist() for t in play(environment, 6)]
    assert stacks == [
        [0, 0, 10],
        [0, 10, 11],
        [10, 11, 12],
        [11, 12, 13],
        [12, 13, 14],
        # The step after a LAST step begins a new stack.
        [0, 0, 10],
        [0, 10, 11],
    ]


def test_earlier_stacks_do_not_change():
    environment = wrappers.FrameStackingWrapper(Scripted([0.0] * 4), num_frames=2)
    first = environment.reset().observation
    environment.step(0)
    assert first.tolist() == [0, 0]


def test_arrays_of_a_nest_are_stacked_along_a_new_last_axis():
    picture = np.arange(12, dtype=np.uint8).reshape(2, 3, 2)
    observation = {"picture": picture, "lives": np.float32(3)}
    inner = Scripted(
        [0.0],
        observations=[observation] * 2,
        observation_spec={
            "picture": specs.BoundedArray((2, 3, 2), np.uint8, 0, 255, "picture"),
            "lives": specs.Array((), np.float32),
        },
    )
    environment = wrappers.FrameStackingWrapper(inner, num_frames=4)
    spec = environment.observation_spec()
    assert spec["picture"] == specs.Array((2, 3, 2, 4), np.uint8)
    assert spec["picture"].name == "picture"
    assert spec["lives"] == specs.Array((4,), np.float32)
    stack = environment.reset().observation["picture"]
    np.testing.assert_array_equal(stack[..., 3], picture)
    assert not stack[..., :3].any()

    flat = wrappers.FrameStackingWrapper(inner, num_frames=4, flatten=True)
    assert flat.observation_spec()["picture"].shape == (2, 3, 8)
    assert flat.observation_spec()["lives"].shape == (4,)
    stack = flat.reset().observation["picture"]
    # All frames of the first channel come before all of the second.
    np.testing.assert_array_equal(stack[..., 3], picture[..., 0])
    np.testing.assert_array_equal(stack[..., 7], picture[..., 1])


def test_the_stack_is_tfrls_history_with_its_axis_last():
    stacked = wrappers.FrameStackingWrapper(
        py_to_dm_wrapper.PyToDMWrapper(test_envs.CountingEnv(4)), num_frames=3
    )
    history = py_to_dm_wrapper.PyToDMWrapper(
        HistoryWrapper(test_envs.CountingEnv(4), history_length=3)
    )
    for one, other in zip(play(stacked, 7), play(history, 7), strict=True):
        np.testing.assert_array_equal(
            one.observation, np.moveaxis(other.observation, 0, -1)
        )


def test_no_frames_are_refused():
    with pytest.raises(ValueError, match=r"num_frames: expected .* got 0"):
        wrappers.FrameStackingWrapper(Scripted([0.0]), num_frames=0)
