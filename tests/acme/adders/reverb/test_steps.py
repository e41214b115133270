"""Helpers for rows of episodes."""

import numpy as np
import pytest

from tfrl.acme.adders import reverb as adders
from tfrl.acme.adders.reverb import steps, utils


def test_zeros_like_keeps_shapes_and_dtypes():
    zeros = utils.zeros_like({"a": np.ones([2, 3], np.uint8), "b": (2.5, np.True_)})
    np.testing.assert_array_equal(zeros["a"], np.zeros([2, 3]))
    assert zeros["a"].dtype == np.uint8
    assert [leaf.dtype for leaf in zeros["b"]] == [np.float64, np.bool_]
    assert zeros["b"] == (0, False)


def test_a_final_step_has_only_its_observation():
    step = adders.Step(
        observation=np.float32(1),
        action={"a": np.ones(2, np.int32)},
        reward=np.float32(2),
        discount=np.float32(1),
        start_of_episode=np.True_,
        extras=(np.float64(3),),
    )
    final = utils.final_step_like(step, np.float32(7))
    assert final.observation == 7
    np.testing.assert_array_equal(final.action["a"], [0, 0])
    assert final.action["a"].dtype == np.int32
    assert final[2:] == (0, 0, False, (0,))


@pytest.mark.parametrize(
    ("extras", "expected"),
    [
        ((), True),
        ({}, True),
        (None, True),
        ({"a": ()}, True),
        (np.zeros([]), False),
        (np.zeros([0]), False),
        ({"a": 0}, False),
    ],
)
def test_empty_extras(extras, expected):
    assert steps.is_empty(extras) is expected
