"""Actions for raw observations, of every kind of policy."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.policies import (
    policy_loader,
    policy_saver,
    py_tf_eager_policy,
    random_py_policy,
    tf_policy,
)
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

OBSERVATION = {
    "place": tf.TensorSpec([2], tf.float32),
    "level": tf.TensorSpec([], tf.int32),
}
ACTION = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 100)


class Adding(tf_policy.TFPolicy):
    """Acts with the level plus the steps since the episode began, which it counts."""

    def __init__(self):
        super().__init__(
            ts.time_step_spec(OBSERVATION), ACTION, (tf.TensorSpec([], tf.int64),)
        )

    def _variables(self):
        return []

    def _action(self, time_step, policy_state, seed):
        level = tf.cast(time_step.observation["level"], tf.int64)
        return policy_step.PolicyStep(level + policy_state[0], (policy_state[0] + 1,))


def observe(*level):
    """An observation, or a batch of them, with floats and integers of Python's size."""
    (level,) = level if len(level) == 1 else (list(level),)
    return {"place": np.zeros([*np.shape(level), 2]), "level": np.array(level)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("policy") / "saved"
    policy_saver.PolicySaver(Adding()).save(path)
    return path


@pytest.fixture(params=["live", "on arrays", "loaded"])
def policy(request, saved):
    if request.param == "loaded":
        return policy_loader.load(saved)
    live = Adding()
    return live if request.param == "live" else py_tf_eager_policy.PyTFEagerPolicy(live)


def test_one_observation_gives_one_action_and_the_state_to_go_on_with(policy):
    action, state = policy.predict(observe(10))
    assert isinstance(action, np.int64)
    assert (action.shape, action, state) == ((), 10, (1,))
    action, state = policy.predict(observe(10), state)
    assert (action, state) == (11, (2,))
    assert policy.predict(observe(10), state, episode_start=True)[0] == 10


def test_a_batch_gives_a_batch(policy):
    actions, state = policy.predict(observe(10, 20, 30))
    assert actions.tolist() == [10, 20, 30]
    actions, state = policy.predict(
        observe(10, 20, 30), state, np.array([False, True, False])
    )
    assert actions.tolist() == [11, 20, 31]
    assert state[0].tolist() == [2, 1, 2]


@pytest.mark.parametrize(
    ("levels", "state", "message"),
    [
        ((1, 2, 3), ([4],), r"state: got an array \[1\], expected \[3\] for the obs"),
        ((1, 2, 3), (4,), r"state: got an array \[\], expected \[3\]"),
        ((1,), ([4],), r"state: got an array \[1\], expected \[\]"),
        ((1,), (), "state: its structure differs from the policy's"),
        ((1,), 4, "state: its structure differs .*give the state that the call before"),
    ],
)
def test_a_state_that_is_not_of_the_observations_is_refused(
    policy, levels, state, message
):
    with pytest.raises(ValueError, match=message):
        policy.predict(observe(*levels), state)


def test_tensorflow_alone_predicts_batches(saved):
    loaded = tf.saved_model.load(saved)
    batch = {"place": tf.zeros([2, 2]), "level": tf.constant([10, 20])}
    actions, state = loaded.predict(batch)
    assert actions.numpy().tolist() == [10, 20]
    actions, _ = loaded.predict(batch, state, tf.constant([False, True]))
    assert actions.numpy().tolist() == [11, 20]


def test_a_policy_in_python_predicts_on_arrays():
    policy = random_py_policy.RandomPyPolicy(
        ts.time_step_spec(OBSERVATION), ACTION, seed=0
    )
    action, state = policy.predict(observe(10))
    assert (np.shape(action), state) == ((), ())
    actions, _ = policy.predict(observe(10, 20, 30))
    assert actions.shape == (3,)


@pytest.mark.parametrize(
    ("observation", "starts", "error", "message"),
    [
        ({"place": [0, 0]}, None, ValueError, "observation: its structure differs"),
        (
            {"place": [0, 0], "level": 0.5},
            None,
            TypeError,
            r"observation/level: got dtype float64, expected int32; convert it",
        ),
        (
            {"place": [0, 0, 0], "level": 0},
            None,
            ValueError,
            r"observation/place: got shape \(3,\), expected \(2,\); .* a batch of all",
        ),
        (
            {"place": [0, np.nan], "level": 0},
            None,
            ValueError,
            r"observation/place: got NaN at index \[1\], expected finite numbers",
        ),
        (
            {"place": [[0, 0], [-np.inf, 0]], "level": [0, 0]},
            None,
            ValueError,
            r"observation/place: got -inf at index \[1, 0\], expected finite",
        ),
        (
            {"place": [0, 0], "level": np.nan},
            None,
            TypeError,
            r"observation/level: got dtype float64, expected int32",
        ),
        (
            {"place": [0, 0], "level": 2**40},
            None,
            TypeError,
            r"observation/level: got dtype int64, expected int32",
        ),
        (
            {"place": [[0], [0, 0]], "level": [0, 0]},
            None,
            ValueError,
            "observation/place: got no array",
        ),
        (
            {"level": [1], "place": [0, 0]},
            None,
            ValueError,
            r"observation/place: got shape \(2,\), expected \(None, 2\)",
        ),
        (
            {"place": [0, 0], "level": 0},
            [True, False],
            ValueError,
            r"episode_start: got bool \[2\], expected a bool, or bools \[1\]",
        ),
        (
            {"place": [0, 0], "level": 0},
            1,
            ValueError,
            r"episode_start: got int64 \[\], expected a bool",
        ),
    ],
)
def test_what_does_not_fit_is_named(observation, starts, error, message):
    with pytest.raises(error, match=message):
        Adding().predict(observation, episode_start=starts)


def test_an_integer_may_be_given_as_a_float():
    assert Adding().predict(observe(10.0))[0] == 10


def test_an_action_can_be_changed_in_place(policy):
    actions, _ = policy.predict(observe(10, 20))
    actions += 1
    assert actions.tolist() == [11, 21]
    assert policy.predict(observe(10, 20))[0].tolist() == [10, 20]


class Traced(Adding):
    """Counts its traces."""

    def __init__(self):
        super().__init__()
        self.traces = 0

    def _is_pure_tensorflow(self):
        return True

    def _action(self, time_step, policy_state, seed):
        self.traces += not tf.executing_eagerly()
        return super()._action(time_step, policy_state, seed)


@pytest.fixture
def looked_up(monkeypatch):
    """The calls that went through TensorFlow's own look-up of a trace."""
    calls = []
    kind = type(tf.function(lambda: None))
    own = kind._call
    monkeypatch.setattr(
        kind, "_call", lambda self, *a, **k: calls.append(self) or own(self, *a, **k)
    )
    return calls


def test_a_pure_policy_is_traced_for_all_sizes_of_batches():
    policy = Traced()
    for _ in range(3):
        for levels in ((1,), (1, 2, 3), (1, 2), (1, 2, 3, 4)):
            actions, state = policy.predict(observe(list(levels)))
            actions, _ = policy.predict(observe(list(levels)), state)
            assert actions.tolist() == [level + 1 for level in levels]
    assert policy.traces == 2  # For one size, and for any size.


@pytest.mark.parametrize("kind", ["live", "loaded", "action"])
def test_arrays_find_the_trace_without_tensorflow(kind, saved, looked_up):
    policy = policy_loader.load(saved) if kind == "loaded" else Traced()
    time_step = ts.restart({"place": np.zeros([1, 2], "f"), "level": np.array([1])}, 1)
    time_step.observation["level"] = np.array([1], np.int32)

    _, state = policy.predict(observe(1))

    def act():
        if kind == "action":
            return policy.action(time_step)
        return policy.predict(observe(1), state)

    for _ in range(12):
        act()
    looked_up.clear()
    for _ in range(3):
        act()
    assert looked_up == []
