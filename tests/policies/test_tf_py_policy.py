"""`TFPyPolicy`: a policy on arrays inside TensorFlow graphs."""

import time

import numpy as np
import pytest
import tensorflow as tf

from tfrl.policies import (
    batched_py_policy,
    py_policy,
    random_py_policy,
    scripted_py_policy,
    tf_py_policy,
)
from tfrl.specs import array_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

OBSERVATION = array_spec.ArraySpec((), np.float32)
TIME_STEP = ts.time_step_spec(OBSERVATION)
ACTION = array_spec.BoundedArraySpec((), np.int32, 0, 3)
NOISE = {"a": array_spec.BoundedArraySpec((2,), np.float32, 0.0, 1.0)}


class Summing(py_policy.PyPolicy):
    """Adds up what it observes, in a nested state; acts with the sum."""

    def __init__(self):
        super().__init__(
            TIME_STEP,
            {"sum": [array_spec.ArraySpec((), np.float32)]},
            policy_state_spec={"s": OBSERVATION},
            info_spec=OBSERVATION,
        )

    def _action(self, time_step, policy_state, seed=None):
        total = policy_state["s"] + time_step.observation
        return policy_step.PolicyStep({"sum": [total]}, {"s": total}, total * 2)


def step(values):
    return ts.transition(tf.constant(values), tf.zeros([len(values)]))


def random(batched):
    policy = random_py_policy.RandomPyPolicy(TIME_STEP, NOISE, seed=0)
    return tf_py_policy.TFPyPolicy(policy, py_policy_is_batched=batched)


def test_a_policy_on_single_steps_runs_in_a_graph_and_carries_its_state():
    policy = tf_py_policy.TFPyPolicy(Summing())
    action = tf.function(policy.action)
    state = policy.get_initial_state(1)
    np.testing.assert_array_equal(state["s"], [0.0])
    for _ in range(3):
        result = action(step([2.0]), state)
        state = result.state
    np.testing.assert_array_equal(result.action["sum"][0], [6.0])
    np.testing.assert_array_equal(result.info, [12.0])
    assert action.experimental_get_tracing_count() == 1


def test_a_policy_on_batches_gets_them_whole():
    policy = tf_py_policy.TFPyPolicy(Summing(), py_policy_is_batched=True)
    state = policy.get_initial_state(tf.constant(3))
    result = policy.action(step([1.0, 2.0, 3.0]), state)
    np.testing.assert_array_equal(result.state["s"], [1.0, 2.0, 3.0])


def test_the_state_is_not_reset_by_the_shell():
    policy = tf_py_policy.TFPyPolicy(Summing())
    first = ts.restart(tf.constant([1.0]), batch_size=1)
    result = policy.action(first, {"s": tf.constant([5.0])})
    np.testing.assert_array_equal(result.state["s"], [6.0])


def test_a_script_runs_in_a_graph():
    script = [(1, 3), (2, 1)]
    policy = tf_py_policy.TFPyPolicy(
        scripted_py_policy.ScriptedPyPolicy(TIME_STEP, ACTION, script)
    )
    action = tf.function(policy.action)
    state, actions = policy.get_initial_state(1), []
    for _ in range(3):
        result = action(step([0.0]), state)
        state = result.state
        actions.append(int(result.action[0]))
    assert actions == [3, 1, 1]


def test_shapes_are_known_while_tracing():
    on_one, on_many = random(batched=False), random(batched=True)

    @tf.function
    def shapes():
        one = on_one.action(step([0.0])).action["a"]
        assert one.shape == [1, 2]
        many = on_many.action(step([0.0] * 7)).action["a"]
        assert many.shape == [7, 2]
        return many

    assert shapes().shape == [7, 2]


def test_policies_for_each_entry_act_in_threads():
    policies = [Summing() for _ in range(3)]
    policy = tf_py_policy.TFPyPolicy(
        batched_py_policy.BatchedPyPolicy(policies), py_policy_is_batched=True
    )
    action = tf.function(policy.action)
    result = action(step([1.0, 2.0, 3.0]), policy.get_initial_state(3))
    np.testing.assert_array_equal(result.action["sum"][0], [1.0, 2.0, 3.0])


def test_seeds_reach_the_policy():
    policy = random(batched=True)
    action = tf.function(lambda seed: policy.action(step([0.0] * 7), (), seed))

    def draw(seed):
        return action(tf.constant(seed, tf.int64)).action["a"].numpy()

    np.testing.assert_array_equal(draw([1, 2]), draw([1, 2]))
    assert not np.array_equal(draw([1, 2]), draw([1, 3]))
    # The seed `s` becomes the policy's own.
    expected = random_py_policy.RandomPyPolicy(TIME_STEP, NOISE).action(
        tf.nest.map_structure(np.asarray, step([0.0] * 7)), seed=5
    )
    np.testing.assert_array_equal(draw([5, 0]), expected.action["a"])


def test_without_a_seed_the_policys_own_stream_decides():
    policy = random(batched=False)
    one, other = (policy.action(step([0.0])).action["a"] for _ in range(2))
    assert not np.array_equal(one, other)


def test_there_are_no_variables_and_no_distribution():
    policy = random(batched=False)
    assert policy.variables() == []
    with pytest.raises(NotImplementedError, match="has no distribution"):
        policy.distribution(step([0.0]))


def test_a_batch_for_a_policy_on_single_steps_is_an_error():
    with pytest.raises(
        ValueError, match=r"got time steps of outer shape \(3,\), expected \(1,\)"
    ):
        random(batched=False).action(step([0.0] * 3))
    with pytest.raises(
        ValueError,
        match=r"got a state of outer shape \(3,\), expected \(1,\), .* Batch",
    ):
        tf_py_policy.TFPyPolicy(Summing()).get_initial_state(3)


def test_something_that_is_no_policy_on_arrays_is_a_type_error():
    with pytest.raises(TypeError, match=r"policy: expected a PyPolicy, got TFPyPolicy"):
        tf_py_policy.TFPyPolicy(random(batched=False))


def test_dtypes_are_listed_in_the_flat_order():
    spec = {"b": tf.TensorSpec([], tf.int32), "a": tf.TensorSpec([], tf.float64)}
    dtypes = tf_py_policy.map_tensor_spec_to_dtypes_list(spec)
    assert dtypes == [tf.float64, tf.int32]


def test_a_policy_without_a_spec_of_time_steps_is_an_error():
    spec = array_spec.BoundedArraySpec((), np.int32, 0, 3)
    script = scripted_py_policy.ScriptedPyPolicy(None, spec, [(1, np.int32(1))])
    with pytest.raises(ValueError, match="policy: got a ScriptedPyPolicy without a"):
        tf_py_policy.TFPyPolicy(script)


def test_a_policy_acts_in_the_order_of_the_program():
    class Slow(py_policy.PyPolicy):
        calls = 0

        def _action(self, time_step, policy_state, seed=None):
            time.sleep(0.001)
            self.calls += 1
            return policy_step.PolicyStep(np.int32(self.calls % 4))

    policy, other = tf_py_policy.TFPyPolicy(Slow(TIME_STEP, ACTION)), tf.Variable(0)

    @tf.function
    def act(time_step):
        first = policy.action(time_step).action
        for _ in tf.range(2):
            other.assign_add(1)  # TensorFlow orders the loop by this variable.
            policy.action(time_step)
        return first, policy.action(time_step).action

    for _ in range(20):
        assert [int(action[0]) for action in act(step([2.0]))] == [1, 0]
