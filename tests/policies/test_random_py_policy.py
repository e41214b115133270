"""`RandomPyPolicy`: uniform actions on arrays."""

import numpy as np
import pytest

from tfrl.policies import random_py_policy
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts

DISCRETE = array_spec.BoundedArraySpec((), np.int32, 3, 5)
CONTINUOUS = array_spec.BoundedArraySpec((2,), np.float32, -1.0, 1.0)
OBSERVATION = array_spec.ArraySpec((3,), np.int64, "mask")


def make(action_spec, **kwargs):
    return random_py_policy.RandomPyPolicy(
        ts.time_step_spec(OBSERVATION), action_spec, **{"seed": 0, **kwargs}
    )


def step(batch=None, mask=(1, 1, 1)):
    observation = np.asarray(mask, np.int64)
    if batch is not None:
        observation = np.tile(observation, (batch, 1))
    return ts.restart(observation, batch_size=batch)


def test_unbatched_actions_match_the_spec():
    action = make({"d": DISCRETE, "c": CONTINUOUS}).action(step()).action
    assert DISCRETE.check_array(action["d"])
    assert CONTINUOUS.check_array(action["c"])


def test_actions_have_the_batch_dimensions_of_the_observation():
    action = make(CONTINUOUS).action(step(7)).action
    assert action.shape == (7, 2)


def test_outer_dims_decide_when_given():
    assert make(DISCRETE, outer_dims=(4,)).action(step()).action.shape == (4,)


def test_all_actions_are_drawn_alike():
    actions = make(DISCRETE).action(step(3000)).action
    np.testing.assert_allclose(np.bincount(actions - 3) / 3000, [1 / 3] * 3, atol=0.04)


def test_only_valid_actions_are_drawn():
    policy = make(DISCRETE, observation_and_action_constraint_splitter=lambda o: (o, o))
    actions = policy.action(step(200, mask=(1, 0, 1))).action
    assert actions.dtype == np.int32
    assert set(actions) == {3, 5}
    assert policy.action(step(mask=(0, 1, 0))).action == 4


def test_a_mask_for_continuous_actions_is_not_implemented():
    with pytest.raises(NotImplementedError, match="one bounded integer spec"):
        make(CONTINUOUS, observation_and_action_constraint_splitter=lambda o: (o, o))


def test_without_a_time_step_spec_actions_are_unbatched():
    policy = random_py_policy.RandomPyPolicy(None, DISCRETE)
    assert policy.action(step(3)).action.shape == ()


def test_info_is_sampled_from_its_spec():
    info = make(DISCRETE, info_spec=(CONTINUOUS,)).action(step(2)).info
    assert info[0].shape == (2, 2)


def test_seeds_reproduce():
    def actions(seed):
        policy = make(CONTINUOUS, seed=seed)
        return [policy.action(step()).action for _ in range(3)]

    np.testing.assert_array_equal(actions(1), actions(1))
    assert not np.array_equal(actions(1), actions(2))


def test_a_seed_argument_decides_alone():
    policy = make(CONTINUOUS)
    np.testing.assert_array_equal(
        policy.action(step(), seed=5).action, policy.action(step(), seed=5).action
    )


def test_actions_without_bounds_are_of_usual_size():
    spec = array_spec.BoundedArraySpec((3,), np.float32, [-np.inf, 5, -np.inf], np.inf)
    spec = spec.replace(maximum=[np.inf, np.inf, -7])
    actions = make(spec).action(step(500)).action
    assert np.all(actions >= [-1, 5, -8])
    assert np.all(actions <= [1, 6, -7])
    assert np.all(np.ptp(actions, axis=0) > 0.9)
