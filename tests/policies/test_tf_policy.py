"""The shell of `TFPolicy`: checks, clipping, state, seeds, specs."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.policies import tf_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

OBSERVATION = {"x": tf.TensorSpec([2], tf.float32), "y": tf.TensorSpec([], tf.int32)}
ACTION = tensor_spec.BoundedTensorSpec([1], tf.float32, -1.0, 1.0)
STATE = {"count": tf.TensorSpec([], tf.int32)}


class CountingPolicy(tf_policy.TFPolicy):
    """Acts with the sum of `x`; its state counts the steps of an episode."""

    def __init__(self, state_spec=STATE, action_dtype=tf.float32, **kwargs):
        super().__init__(ts.time_step_spec(OBSERVATION), ACTION, state_spec, **kwargs)
        self._action_dtype = action_dtype
        self.num_python_calls = 0
        self.weight = tf.Variable([1.0])

    def _variables(self):
        return [self.weight]

    def _action(self, time_step, policy_state, seed):
        self.num_python_calls += 1
        self.last_seed = seed
        action = tf.reduce_sum(time_step.observation["x"], -1, keepdims=True)
        state = tf.nest.map_structure(lambda s: s + 1, policy_state)
        return policy_step.PolicyStep(tf.cast(action, self._action_dtype), state)


class NormalPolicy(tf_policy.TFPolicy):
    """A normal distribution for each of two actions."""

    def __init__(self, **kwargs):
        action = {"a": ACTION, "b": tf.TensorSpec([], tf.float32)}
        super().__init__(ts.time_step_spec(OBSERVATION), action, **kwargs)

    def _variables(self):
        return []

    def _distribution(self, time_step, policy_state):
        import tensorflow_probability as tfp

        batch = tf.shape(time_step.step_type)[0]
        action = {
            "a": tfp.distributions.MultivariateNormalDiag(tf.zeros([batch, 1]), [5.0]),
            "b": tfp.distributions.Normal(tf.zeros([batch]), 1.0),
        }
        return policy_step.PolicyStep(action, policy_state)


def observation(x=((0.25, 0.5), (2.0, 2.0)), **extra):
    x = tf.constant(x)
    return {"x": x, "y": tf.zeros(x.shape[:1], tf.int32), **extra}


def step(kind=ts.transition, **kwargs):
    if kind is ts.restart:
        return ts.restart(observation(**kwargs), batch_size=2)
    return kind(observation(**kwargs), tf.zeros([2]))


def count(values):
    return {"count": tf.constant(values)}


def test_action_returns_a_policy_step_that_matches_its_specs():
    policy = CountingPolicy()
    result = policy.action(step(), count([3, 4]))
    assert isinstance(result, policy_step.PolicyStep)
    np.testing.assert_array_equal(result.state["count"], [4, 5])
    assert result.info == ()


def test_actions_are_clipped_to_the_spec():
    result = CountingPolicy().action(step(), count([0, 0]))
    np.testing.assert_array_equal(result.action, [[0.75], [1.0]])


def test_actions_are_not_clipped_when_clip_is_false():
    result = CountingPolicy(clip=False).action(step(), count([0, 0]))
    np.testing.assert_array_equal(result.action, [[0.75], [4.0]])


def test_state_is_reset_where_the_step_is_first():
    time_step = step()._replace(step_type=tf.constant([ts.StepType.FIRST, 1]))
    result = CountingPolicy().action(time_step, count([7, 7]))
    np.testing.assert_array_equal(result.state["count"], [1, 8])


def test_state_is_kept_at_first_without_automatic_reset():
    policy = CountingPolicy(automatic_state_reset=False)
    result = policy.action(step(ts.restart), count([7, 7]))
    np.testing.assert_array_equal(result.state["count"], [8, 8])


def test_an_omitted_state_is_the_initial_state():
    result = CountingPolicy().action(step())
    np.testing.assert_array_equal(result.state["count"], [1, 1])


def test_initial_state_of_a_stateless_policy_is_empty():
    assert CountingPolicy(state_spec=()).get_initial_state(3) == ()


@pytest.mark.parametrize("state", [tf.constant([1]), object(), None])
def test_a_stateless_policy_drops_what_it_gets_as_state(state):
    assert NormalPolicy().action(step(), state).state == ()


def test_initial_state_has_the_batch_dimension_asked_for():
    policy = CountingPolicy()
    assert policy.get_initial_state(3)["count"].shape == [3]
    assert policy.get_initial_state(None)["count"].shape == []
    assert policy.get_initial_state(tf.constant(3))["count"].shape == [3]


def test_unknown_observation_entries_are_dropped():
    result = CountingPolicy().action(step(z=tf.zeros([2])), count([0, 0]))
    assert result.action.shape == [2, 1]


def test_numpy_time_steps_are_accepted():
    time_step = tf.nest.map_structure(lambda t: t.numpy(), step())
    result = CountingPolicy().action(time_step, count([0, 0]))
    np.testing.assert_array_equal(result.action, [[0.75], [1.0]])


@pytest.mark.parametrize("observation", [np.zeros(2), [0.0], {"x": 1}, tf.ones(2)])
def test_an_observation_alone_leads_to_predict(observation):
    message = r"time_step: expected a TimeStep, got \w+; call predict\(obs.*restart\("
    for method in (CountingPolicy().action, NormalPolicy().distribution):
        with pytest.raises(TypeError, match=message):
            method(observation)


def test_a_missing_observation_entry_is_an_error():
    time_step = step()._replace(observation={"x": tf.zeros([2, 2])})
    with pytest.raises((ValueError, TypeError), match=r"time_step.*structure"):
        CountingPolicy(name="counting").action(time_step, count([0, 0]))


def test_an_observation_of_another_dtype_names_path_and_dtypes():
    wrong = {"x": tf.zeros([2, 2], tf.float64), "y": tf.zeros([2], tf.int32)}
    time_step = step()._replace(observation=wrong)
    with pytest.raises(TypeError, match=r"observation/x.*float64.*expected float32"):
        CountingPolicy().action(time_step, count([0, 0]))


def test_an_observation_of_another_shape_names_path_and_shapes():
    wrong = {"x": tf.zeros([2, 3]), "y": tf.zeros([2], tf.int32)}
    time_step = step()._replace(observation=wrong)
    with pytest.raises(ValueError, match=r"observation/x: got .*\(2, 3\).*\(None, 2\)"):
        CountingPolicy().action(time_step, count([0, 0]))


def test_an_unbatched_part_of_a_batched_step_is_an_error():
    time_step = step()._replace(reward=tf.zeros([]))
    with pytest.raises(ValueError, match=r"reward: got shape \(\), expected \(None,\)"):
        CountingPolicy().action(time_step, count([0, 0]))


def test_a_state_of_another_structure_is_an_error():
    with pytest.raises((ValueError, TypeError), match="policy_state"):
        CountingPolicy().action(step(), [tf.zeros([2], tf.int32)])


def test_an_action_of_another_dtype_is_a_type_error():
    policy = CountingPolicy(action_dtype=tf.float64)
    with pytest.raises(TypeError, match=r"action of dtype float64, expected float32"):
        policy.action(step(), count([0, 0]))


def test_checks_can_be_switched_off():
    policy = CountingPolicy(action_dtype=tf.float64, validate_args=False, clip=False)
    assert policy.action(step(), count([0, 0])).action.dtype == tf.float64


def test_a_time_step_spec_of_another_type_is_an_error():
    class Policy(tf_policy.TFPolicy):
        pass

    with pytest.raises(ValueError, match=r"time_step_spec: expected a TimeStep"):
        Policy(OBSERVATION, ACTION)


def test_trajectory_spec_is_built_from_the_specs():
    info = {"value": tf.TensorSpec([], tf.float32)}
    policy = CountingPolicy(info_spec=info)
    spec = policy.trajectory_spec
    assert isinstance(spec, trajectory.Trajectory)
    assert spec.observation == OBSERVATION
    assert spec.policy_info == info
    assert spec.action == ACTION
    assert policy.collect_data_spec == spec


def test_specs_keep_their_own_types():
    policy = CountingPolicy()
    assert type(policy.time_step_spec) is ts.TimeStep
    assert type(policy.time_step_spec.observation) is dict
    assert type(policy.policy_state_spec) is dict


def test_emit_log_probability_adds_it_to_the_info_spec():
    spec = NormalPolicy(emit_log_probability=True).info_spec
    assert spec.log_probability["a"].dtype == tf.float32
    assert spec.log_probability["a"].shape == []


def test_log_probability_is_that_of_the_drawn_action():
    policy = NormalPolicy(emit_log_probability=True, clip=False, seed=1)
    time_step = step(ts.restart)
    result = policy.action(time_step)
    distribution = policy.distribution(time_step)
    for name in ("a", "b"):
        np.testing.assert_allclose(
            result.info.log_probability[name],
            distribution.action[name].log_prob(result.action[name]),
            rtol=1e-5,
        )
    np.testing.assert_array_equal(distribution.info.log_probability["b"], 0.0)


def test_nested_actions_are_drawn_independently():
    result = NormalPolicy(clip=False).action(step(ts.restart), seed=3)
    a, b = result.action["a"][:, 0] / 5.0, result.action["b"]
    assert np.abs(a - b).min() > 1e-3


def test_a_policy_without_distribution_says_so():
    with pytest.raises(NotImplementedError, match=r"CountingPolicy\.distribution"):
        CountingPolicy().distribution(step(), count([0, 0]))


def test_the_same_policy_seed_gives_the_same_sequence():
    def actions(seed):
        policy = NormalPolicy(seed=seed, clip=False)
        return [policy.action(step(ts.restart)).action["b"].numpy() for _ in range(3)]

    first = actions(5)
    np.testing.assert_array_equal(first, actions(5))
    assert not np.array_equal(first, actions(6))
    assert not np.array_equal(first[0], first[1])


def test_without_a_seed_the_global_seed_decides():
    def actions():
        tf.random.set_seed(11)
        return NormalPolicy(clip=False).action(step(ts.restart)).action["b"].numpy()

    np.testing.assert_array_equal(actions(), actions())


def test_a_seed_argument_decides_alone():
    policy = NormalPolicy(clip=False)
    first = policy.action(step(ts.restart), seed=4).action["b"].numpy()
    policy.action(step(ts.restart))
    again = policy.action(step(ts.restart), seed=tf.constant([4, 0])).action["b"]
    np.testing.assert_array_equal(first, again)


def test_the_own_stream_is_untouched_when_a_seed_is_given():
    policy = NormalPolicy(seed=1)
    before = policy._generator.state.numpy()
    policy.action(step(ts.restart), seed=4)
    np.testing.assert_array_equal(policy._generator.state, before)
    policy.action(step(ts.restart))
    assert not np.array_equal(policy._generator.state, before)


def test_the_inside_always_sees_a_seed_of_two_integers():
    policy = CountingPolicy()
    for seed in (None, 3, tf.constant([1, 2], tf.int64)):
        policy.action(step(), count([0, 0]), seed)
        assert policy.last_seed.shape == [2]
        assert policy.last_seed.dtype.is_integer


def test_the_random_stream_is_checkpointed(tmp_path):
    policy = NormalPolicy(seed=1, clip=False)
    policy.action(step(ts.restart))
    path = tf.train.Checkpoint(policy=policy).write(str(tmp_path / "ckpt"))
    expected = policy.action(step(ts.restart)).action["b"].numpy()
    resumed = NormalPolicy(seed=2, clip=False)
    tf.train.Checkpoint(policy=resumed).read(path).assert_consumed()
    np.testing.assert_array_equal(
        resumed.action(step(ts.restart)).action["b"], expected
    )


def test_action_is_traced_once_for_many_calls():
    policy = CountingPolicy()
    action = tf.function(policy.action)
    state = policy.get_initial_state(2)
    for _ in range(5):
        state = action(step(), state).state
    assert action.experimental_get_tracing_count() == 1
    assert policy.num_python_calls == 1


def test_the_shell_adds_no_operations_to_a_stateless_policy():
    policy = CountingPolicy(state_spec=(), clip=False)
    specs = tf.nest.map_structure(
        lambda s: tf.TensorSpec([2, *s.shape], s.dtype), policy.time_step_spec
    )

    def graph_ops(function):
        graph = tf.function(function).get_concrete_function(specs).graph
        return sorted(op.type for op in graph.get_operations())

    assert graph_ops(lambda t: policy.action(t, (), tf.zeros([2], tf.int32))) == (
        graph_ops(lambda t: policy._action(t, (), tf.zeros([2], tf.int32)))
    )


def test_update_moves_the_variables():
    one, other = CountingPolicy(), CountingPolicy()
    other.weight.assign([3.0])
    one.update(other, tau=0.5)
    np.testing.assert_array_equal(one.weight, [2.0])
    one.update(other)
    np.testing.assert_array_equal(one.variables()[0], [3.0])


class Linear(tf_policy.TFPolicy):
    """Acts with a layer, and leaves it to the base class to list what it is made of."""

    def __init__(self):
        super().__init__(ts.time_step_spec(OBSERVATION), ACTION)
        self.parts = {"layer": keras.layers.Dense(1, activation="tanh")}
        self.parts["layer"].build([None, 2])
        self.noise = tf.random.Generator.from_seed(1, alg="philox")

    def _action(self, time_step, policy_state, seed):
        mean = self.parts["layer"](time_step.observation["x"])
        return policy_step.PolicyStep(mean + 0.0 * self.noise.normal([1]), policy_state)


def test_variables_are_by_default_those_of_all_layers_but_not_of_generators():
    policy, other = Linear(), Linear()
    policy.action(step(ts.restart), seed=1)
    kernel, bias = (v.value for v in policy.parts["layer"].weights)
    assert {id(v) for v in policy.variables()} == {id(kernel), id(bias)}
    state = policy.noise.state.numpy()
    policy.update(other)
    np.testing.assert_array_equal(kernel, other.parts["layer"].kernel)
    np.testing.assert_array_equal(policy.noise.state, state)


def test_distribution_on_sequences_resets_only_their_first_step():
    policy = CountingPolicy()
    sequence = tf.nest.map_structure(lambda t: tf.stack([t, t], 1), step(ts.restart))
    result = policy.action(sequence, count([5, 5]))
    np.testing.assert_array_equal(result.state["count"], [1, 1])


def test_a_distribution_without_log_probability_cannot_emit_it():
    class Sampling(NormalPolicy):
        def _distribution(self, time_step, policy_state):
            import tensorflow_probability as tfp

            class Bare(tfp.distributions.Distribution):
                def _sample_n(self, n, seed=None):
                    return tf.zeros([n, 2])

            bare = Bare(tf.float32, tfp.distributions.NOT_REPARAMETERIZED, False, False)
            return policy_step.PolicyStep({"a": bare, "b": bare}, policy_state)

    with pytest.raises(TypeError, match=r"emit_log_probability: got a Bare"):
        Sampling(emit_log_probability=True).action(step())
