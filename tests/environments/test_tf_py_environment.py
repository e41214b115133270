import re
import threading
import time
from multiprocessing import pool

import gymnasium
import numpy as np
import pytest
import tensorflow as tf
from gymnasium.envs import classic_control

from tfrl import testing
from tfrl.environments import (
    random_tf_environment,
    suite_gym,
    tf_environment,
    tf_py_environment,
    tf_wrappers,
    utils,
)
from tfrl.environments.gymnasium import vector_py_environment
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts

pytestmark = pytest.mark.cpu  # Programs that call Python run there.


class Scripted(testing.CountingEnvironment):
    """`script` says what to return instead at a step; remembers its threads."""

    def __init__(self, script=None, length=3):
        super().__init__(
            length,
            observation_spec=array_spec.BoundedArraySpec((2,), np.float32, -9.0, 9.0),
            action_spec=array_spec.BoundedArraySpec((), np.int64, 0, 4),
            discount=0.9,
        )
        self.script = script or {}
        self.threads = set()

    def _reset(self):
        self.threads.add(threading.get_ident())
        return super()._reset()

    def _step(self, action):
        self.threads.add(threading.get_ident())
        time_step = super()._step(action)
        if self.count in self.script:
            return self.script[self.count](time_step.observation)
        return time_step


def wrap(*args, **kwargs):
    return tf_py_environment.TFPyEnvironment(Scripted(*args, **kwargs))


def in_graph(environment):
    """Returns `step` as a function that runs in a graph."""
    return tf.function(environment.step)


def as_is(environment):
    return environment.step


def numpy_values(time_step):
    return tf.nest.map_structure(lambda x: x.numpy().tolist(), time_step)


def under_xla(environment):
    """Returns `step` as a function that XLA compiles."""
    return tf.function(environment.step, jit_compile=True)


MODES = pytest.mark.parametrize("stepping", [as_is, in_graph, under_xla])


def test_is_a_tf_environment_with_tensor_specs():
    environment = tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v0"))
    assert isinstance(environment, tf_environment.TFEnvironment)
    spec = environment.time_step_spec()
    assert spec.observation.shape == (4,)
    assert spec.step_type.dtype == tf.int32
    assert environment.action_spec().dtype == tf.int64
    assert environment.batched
    assert environment.batch_size == 1
    assert environment.observation_spec() is spec.observation
    assert environment.reward_spec() is spec.reward


@MODES
def test_one_member_becomes_a_batch_of_one(stepping):
    environment = wrap()
    step = stepping(environment)
    environment.reset()
    steps = [numpy_values(step(tf.constant([i]))) for i in range(4)]
    assert steps == [
        ([1], [1.0], [np.float32(0.9)], [[1.0, 1.0]]),
        ([1], [2.0], [np.float32(0.9)], [[2.0, 2.0]]),
        ([2], [3.0], [0.0], [[3.0, 3.0]]),
        ([0], [0.0], [1.0], [[0.0, 0.0]]),
    ]
    assert environment.actions == [0, 1, 2]


def test_cartpole_equals_plain_gymnasium_step_by_step():
    py_env = suite_gym.load("CartPole-v1")
    py_env.seed(1)
    environment = tf_py_environment.TFPyEnvironment(py_env)
    plain = gymnasium.make("CartPole-v1")

    @tf.function
    def play(steps):
        observations = tf.TensorArray(tf.float32, steps, element_shape=[1, 4])
        types = tf.TensorArray(tf.int32, steps, element_shape=[1])
        environment.reset()
        for i in tf.range(steps):
            time_step = environment.step([i % 2])
            observations = observations.write(i, time_step.observation)
            types = types.write(i, time_step.step_type)
        return observations.stack()[:, 0], types.stack()[:, 0]

    observations, types = (x.numpy() for x in play(tf.constant(120)))
    plain.reset(seed=1)
    done = False
    for i in range(120):
        if done:
            expected, done = plain.reset()[0], False
            assert types[i] == 0
        else:
            expected, _, terminated, truncated, _ = plain.step(i % 2)
            done = terminated or truncated
            assert types[i] == (2 if done else 1)
        np.testing.assert_array_equal(observations[i], expected)


def test_current_time_step_resets_once_and_does_not_step():
    environment = wrap()
    assert environment.current_time_step().is_first().numpy().all()
    environment.step([1])
    for _ in range(2):
        assert numpy_values(environment.current_time_step()).reward == [1.0]
    current = tf.function(environment.current_time_step)()
    assert numpy_values(current).reward == [1.0]
    assert environment.actions == [1]


def test_seconds_in_python_are_those_of_steps_and_resets(monkeypatch):
    clock = iter(range(100))
    environment = wrap()
    monkeypatch.setattr(
        "tfrl.environments.tf_py_environment.time.perf_counter", lambda: next(clock)
    )
    assert environment.python_seconds == 0
    environment.reset()
    tf.function(environment.step)(tf.constant([1]))
    environment.current_time_step()
    assert tf_wrappers.TFEnvironmentBaseWrapper(environment).python_seconds == 2


@MODES
def test_step_before_reset_gives_first(stepping):
    assert stepping(wrap())(tf.constant([0])).is_first().numpy().tolist() == [True]


def test_static_shapes_are_set_in_a_graph():
    environment = tf_py_environment.TFPyEnvironment(
        vector_py_environment.load("CartPole-v1", 3)
    )

    @tf.function
    def check():
        for time_step in (environment.reset(), environment.current_time_step()):
            assert time_step.step_type.shape == (3,)
            assert time_step.observation.shape == (3, 4)
        assert environment.step(tf.zeros([3], tf.int64)).discount.shape == (3,)

    check()


def test_a_loop_traces_once_and_keeps_the_order():
    environment = wrap(length=100)

    @tf.function
    def loop(steps):
        total = tf.zeros([1])
        for _ in tf.range(steps):
            environment.reset()
            environment.step([1])
            total += environment.step([2]).reward
        return total

    assert loop(tf.constant(3)).numpy() == [6.0]
    assert loop(tf.constant(5)).numpy() == [10.0]
    assert environment.actions == [1, 2] * 8
    assert loop.experimental_get_tracing_count() == 1


class Noted(testing.CountingEnvironment):
    """Notes its calls; each takes a while."""

    def __init__(self):
        action_spec = array_spec.BoundedArraySpec((), np.int32, 0, 9)
        super().__init__(100, action_spec=action_spec)
        self.calls = []

    def _reset(self):
        time.sleep(0.0005)
        self.calls.append("reset")
        return super()._reset()

    def _step(self, action):
        time.sleep(0.0001)
        self.calls.append(int(action))
        return super()._step(action)

    def render(self, mode="rgb_array"):
        self.calls.append("render")
        return super().render(mode)


def steps_in_a_loop(environment, noise, first=0):
    """Steps and draws numbers; a graph orders its loop by the numbers."""

    def body(i):
        noise.uniform([])
        environment.step([i])
        return (i + 1,)

    last = tf.constant(first + 3)
    tf.while_loop(lambda i: i < last, body, [tf.constant(first)])


def in_a_loop(environment, noise):
    environment.current_time_step()
    steps_in_a_loop(environment, noise)
    environment.render()
    environment.reset()
    steps_in_a_loop(environment, noise, 5)


def in_a_branch(environment, noise):
    def branch():
        noise.uniform([])
        environment.step([1])
        environment.reset()
        return 0

    environment.reset()
    tf.cond(noise.uniform([]) < 2, branch, lambda: 0)
    environment.step([2])
    tf.switch_case(tf.constant(1), [lambda: 0, branch])
    environment.step([3])


def in_functions(environment, noise):
    def steps():
        steps_in_a_loop(environment, noise, 4)

    def resets():
        environment.reset()
        inner()
        environment.reset()

    inner = tf.function(steps, autograph=False)
    outer = tf.function(resets, autograph=False)
    environment.current_time_step()
    inner()
    environment.step([8])
    outer()
    inner()


def in_a_compiled_function(environment, noise):
    def steps():
        steps_in_a_loop(environment, noise, 4)

    inner = tf.function(steps, jit_compile=True, autograph=False)
    environment.reset()
    inner()
    environment.step([8])
    inner()
    environment.reset()


def in_a_map(environment, noise):
    def step(i):
        noise.uniform([])
        environment.step(i[tf.newaxis])
        return i

    environment.reset()
    tf.map_fn(step, tf.range(4))
    environment.reset()
    tf.scan(lambda _, i: step(i), tf.range(4), tf.constant(0))
    environment.step([9])


@pytest.mark.parametrize(
    "program",
    [
        in_a_loop,
        in_a_branch,
        in_a_compiled_function,
        pytest.param(in_functions, marks=pytest.mark.slow),
        pytest.param(in_a_map, marks=pytest.mark.slow),
    ],
)
def test_a_graph_calls_the_environment_in_the_order_of_the_program(program):
    noise = tf.random.Generator.from_seed(1)
    environment = tf_py_environment.TFPyEnvironment(Noted())
    [noted] = environment.envs
    fresh = environment.get_state()
    program(environment, noise)
    expected = noted.calls
    run = tf.function(lambda: program(environment, noise), autograph=False)
    for _ in range(50):
        environment.set_state(fresh)
        noted.calls = []
        with environment.reraise():
            run()
        assert noted.calls == expected


def test_a_compiled_program_keeps_the_order_of_calls_that_need_nothing_of_each_other():
    environment = wrap(length=100)

    @tf.function(jit_compile=True)
    def loop(steps):
        environment.step([0])
        first = environment.reset()
        for i in tf.range(steps):
            environment.step([i])
        return first, environment.current_time_step(), environment.step([4])

    for steps in (3, 2):
        first, current, last = loop(tf.constant(steps))
        assert numpy_values(first.observation) == [[0, 0]]
        assert numpy_values(current.observation) == [[steps] * 2]
        assert numpy_values(last.observation) == [[steps + 1] * 2]
    assert environment.actions == [0, 1, 2, 4, 0, 0, 1, 4]
    assert loop.experimental_get_tracing_count() == 1


@MODES
def test_batched_members_are_at_different_step_types(stepping):
    environment = tf_py_environment.TFPyEnvironment(
        vector_py_environment.load("CartPole-v1", 4, "sync")
    )
    step = stepping(environment)
    environment.reset()
    ends = np.zeros(4)
    mixed = False
    for i in range(60):
        time_step = step(tf.constant([0, 1, i % 2, (i // 2) % 2], tf.int64))
        ends += time_step.is_last().numpy()
        mixed |= len(set(time_step.step_type.numpy())) > 1
    assert (ends[:2] > 3).all()
    assert mixed


@MODES
def test_nests_of_actions_and_observations(stepping):
    environment = tf_py_environment.TFPyEnvironment(
        testing.CountingEnvironment(
            observation_spec={
                "count": array_spec.ArraySpec((), np.int32),
                "rest": (array_spec.ArraySpec((1,), np.uint8),),
            },
            action_spec={
                "a": array_spec.BoundedArraySpec((), np.int32, 0, 1),
                "b": (array_spec.BoundedArraySpec((2,), np.float32, -1.0, 1.0),),
            },
            # A Python number does for an array.
            observe=lambda n: {"count": n, "rest": (np.array([n], np.uint8),)},
        )
    )
    step = stepping(environment)
    environment.reset()
    time_step = step({"a": tf.constant([1]), "b": (tf.constant([[0.5, -0.5]]),)})
    assert numpy_values(time_step.observation) == {"count": [1], "rest": ([[1]],)}
    assert time_step.observation["rest"][0].dtype == tf.uint8
    action = environment.actions[0]
    assert (action["a"], action["b"][0].tolist()) == (1, [0.5, -0.5])
    with pytest.raises(
        ValueError, match=r"action: got .*structure .*(pack|take) (the )?actions"
    ):
        environment.step({"a": tf.constant([1])})
    with pytest.raises(
        ValueError, match=r"action/b/0: got shape \(1, 3\), expected \(1, 2"
    ):
        environment.step({"a": tf.constant([1]), "b": (tf.zeros([1, 3]),)})


@MODES
@pytest.mark.parametrize("dtype", [tf.int32, tf.int64, tf.uint8])
def test_integer_actions_of_another_dtype_are_cast(stepping, dtype):
    environment = wrap()
    environment.reset()
    stepping(environment)(tf.constant([3], dtype))
    assert environment.actions == [3]
    assert environment.actions[0].dtype == np.int64


@MODES
def test_a_batch_of_one_takes_a_number_without_the_batch(stepping):
    environment = wrap()
    environment.reset()
    stepping(environment)(tf.constant(3, tf.int64))
    assert environment.actions == [3]


@MODES
@pytest.mark.parametrize("shape", [(2,), (1, 1)])
def test_action_of_the_wrong_shape_is_an_error(stepping, shape):
    environment = wrap()
    environment.reset()
    with pytest.raises(ValueError, match=r"action: got shape .*, expected \(1,\)"):
        stepping(environment)(tf.zeros(shape, tf.int64))


@MODES
def test_action_of_the_wrong_kind_is_an_error(stepping):
    environment = wrap()
    environment.reset()
    with pytest.raises(TypeError, match=r"action: got dtype float32, expected .*int64"):
        stepping(environment)(tf.zeros([1]))


def test_action_of_unknown_static_shape_is_checked_when_it_comes():
    environment = wrap()
    environment.reset()
    step = tf.function(
        environment.step, input_signature=[tf.TensorSpec(None, tf.int64)]
    )
    step(tf.constant([1], tf.int64))
    with (
        pytest.raises(ValueError, match=r"action: got shape \(2,\), expected \(1,\)"),
        environment.reraise(),
    ):
        step(tf.constant([1, 1], tf.int64))


def bad_dtype(observation):
    return ts.transition(observation.astype(np.float64), 1.0)


def bad_shape(observation):
    return ts.transition(observation[:1], 1.0)


def bad_nan(observation):
    return ts.transition(np.array([1.0, np.nan], np.float32), 1.0)


def bad_infinity(observation):
    return ts.transition(np.array([-np.inf, 1.0], np.float32), 1.0)


def bad_structure(observation):
    return ts.transition({"x": observation}, 1.0)


def bad_reward(observation):
    return ts.transition(observation, 1.0)._replace(reward=np.float32(np.nan))


def large_reward(observation):
    return ts.transition(observation, 1.0)._replace(reward=1e300)


def bad_reward_shape(observation):
    return ts.transition(observation, [1.0])


@MODES
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            bad_dtype,
            "observation: got dtype float64, expected an array of dtype float32,",
        ),
        (bad_shape, r"observation: got shape \(1,\), expected \(2,\),"),
        (bad_nan, r"observation: got NaN at index \[1\], expected a finite number,"),
        (bad_infinity, r"observation: got -inf at index \[0\], expected a finite"),
        (bad_structure, "observation: got a dict, expected an array of dtype float32,"),
        (bad_reward, "reward: got NaN, expected a finite number,"),
        (large_reward, r"reward: got 1e\+300 \(infinite in float32\), expected a"),
        (bad_reward_shape, r"reward: got shape \(1,\), expected \(\)"),
    ],
)
def test_broken_time_steps_name_environment_field_and_step(stepping, bad, message):
    environment = wrap({2: bad})
    step = stepping(environment)
    environment.reset()
    step(tf.constant([0]))
    with (
        pytest.raises(
            ValueError, match=message + r".* from environment Scripted at st"
        ),
        environment.reraise(),
    ):
        step(tf.constant([0]))


def test_message_counts_the_steps_from_the_first_reset():
    environment = wrap({2: bad_nan})
    environment.reset()
    environment.step([0])
    with pytest.raises(ValueError, match="at step 3; correct the environment"):
        environment.step([0])


class Broken(Exception):
    """An environment's own exception, of a type unknown to TensorFlow."""


def fail(observation):
    raise Broken("the wheel came off")


def test_an_eager_call_raises_the_environments_own_exception():
    environment = wrap({1: fail})
    environment.reset()
    with pytest.raises(Broken, match="the wheel came off"):
        environment.step([0])


def test_a_graph_raises_the_environments_own_exception_inside_of_reraise():
    environment = wrap({1: fail})
    step = in_graph(environment)
    environment.reset()
    with pytest.raises(tf.errors.OpError, match="the wheel came off"):
        step(tf.constant([0]))
    environment.reset()
    with pytest.raises(Broken, match="the wheel came off"), environment.reraise():
        step(tf.constant([0]))


def test_a_compiled_program_truncates_the_episode_and_raises_at_the_end(capfd):
    environment = wrap({2: fail})
    step = under_xla(environment)
    environment.reset()
    first = step(tf.constant([0]))
    with pytest.raises(Broken, match="the wheel came off"), environment.reraise():
        truncated = step(tf.constant([0]))
    assert numpy_values(truncated) == ([2], [0.0], [1.0], [[1.0, 1.0]])
    np.testing.assert_array_equal(truncated.observation, first.observation)
    assert not environment.has_failed()
    # Outside of `reraise` it is printed, and raised by the next call.
    assert not capfd.readouterr().err
    environment.reset()
    for _ in range(2):
        step(tf.constant([0]))
    assert environment.has_failed()
    assert "Broken: the wheel came off" in capfd.readouterr().err
    with pytest.raises(Broken):
        environment.reset()
    assert environment.reset().is_first()


def test_an_exception_of_the_first_reset_in_a_compiled_program_is_raised():
    class Unwilling(Scripted):
        def _reset(self):
            raise Broken("no beginning")

    environment = tf_py_environment.TFPyEnvironment(Unwilling())
    reset = tf.function(environment.reset, jit_compile=True)
    with pytest.raises(Broken, match="no beginning"), environment.reraise():
        reset()


def test_a_step_traced_before_cannot_be_compiled_but_another_can():
    environment = wrap(length=100)
    step = in_graph(environment)
    environment.reset()
    step(tf.constant([0]))
    program = tf.function(lambda: step(tf.constant([0])), jit_compile=True)
    with (
        pytest.raises(NotImplementedError, match="give that program another"),
        environment.reraise(),
    ):
        program()
    another = in_graph(environment)
    program = tf.function(lambda: another(tf.constant([0])), jit_compile=True)
    assert numpy_values(program().observation) == [[2, 2]]
    # It works outside of the program as well.
    assert numpy_values(another(tf.constant([0])).observation) == [[3, 3]]


def test_no_pictures_are_drawn_in_compiled_programs():
    environment = wrap()
    with pytest.raises(NotImplementedError, match="render outside of it"):
        tf.function(environment.render, jit_compile=True)()


def test_a_failed_environment_ends_a_compiled_loop():
    environment = wrap({4: fail}, length=100)

    @tf.function(jit_compile=True, autograph=False)
    def loop():
        environment.reset()

        def body(i):
            environment.step([0])
            return i + 1

        (i,) = tf.while_loop(
            lambda i: (i < 9) & ~environment.has_failed(), body, [tf.constant(0)]
        )
        return i, environment.current_time_step()

    with pytest.raises(Broken), environment.reraise():
        i, time_step = loop()
    assert int(i) == 4
    assert time_step.is_last()


def test_an_environment_written_in_tensorflow_never_fails():
    environment = random_tf_environment.RandomTFEnvironment(
        ts.time_step_spec(tf.TensorSpec([2])), tf.TensorSpec([1])
    )
    wrapper = tf_wrappers.TFEnvironmentBaseWrapper(environment)
    assert not environment.has_failed()
    assert not wrapper.has_failed()
    assert not tf_wrappers.TFEnvironmentBaseWrapper(wrap()).has_failed()


def test_reraise_leaves_other_errors_alone():
    environment = wrap({1: fail})
    environment.reset()
    with pytest.raises(Broken):
        environment.step([0])
    with pytest.raises(tf.errors.InvalidArgumentError), environment.reraise():
        tf.debugging.assert_equal(tf.constant(1), tf.constant(2))


def test_concurrent_calls_are_refused():
    environment = wrap({1: lambda o: (time.sleep(0.5), ts.transition(o, 1.0))[1]})
    environment.reset()
    thread = threading.Thread(target=lambda: environment.step([0]))
    thread.start()
    while not environment.actions:
        time.sleep(0.01)
    with pytest.raises(RuntimeError, match="two calls at the same time"):
        environment.reset()
    thread.join()


@pytest.mark.parametrize("isolation", [True, 1])
def test_isolation_calls_the_environment_on_one_thread_of_its_own(isolation):
    environment = tf_py_environment.TFPyEnvironment(Scripted, isolation=isolation)
    in_graph(environment)(tf.constant([0]))
    environment.step([0])
    assert len(environment.threads) == 1
    assert threading.get_ident() not in environment.threads
    environment.close()
    assert environment.closed


def test_isolation_takes_a_pool_and_leaves_it_open():
    with pool.ThreadPool(1) as own:
        environment = tf_py_environment.TFPyEnvironment(Scripted(), isolation=own)
        environment.step([0])
        environment.close()
        assert {own.apply(threading.get_ident)} == environment.threads


def test_other_objects_than_environments_are_refused():
    with pytest.raises(TypeError, match=r"environment: got .*wrap a Gymnasium environ"):
        tf_py_environment.TFPyEnvironment(gymnasium.make("CartPole-v1"))
    with pytest.raises(TypeError, match="environment: got 3 of type int"):
        tf_py_environment.TFPyEnvironment(lambda: 3)
    with pytest.raises(TypeError, match="isolation: got 'yes'"):
        tf_py_environment.TFPyEnvironment(Scripted(), isolation="yes")


def test_unknown_attributes_come_from_the_python_environment():
    py_env = Scripted(length=7)
    environment = tf_py_environment.TFPyEnvironment(py_env)
    assert environment.length == 7
    assert environment.pyenv.envs == environment.envs == [py_env]
    assert environment._envs == environment.envs  # Programs for TF-Agents read it.
    assert environment.pyenv.batched
    with pytest.raises(AttributeError):
        _ = environment.no_such_thing


def test_pyenv_of_a_batched_environment_is_itself():
    py_env = vector_py_environment.load("CartPole-v1", 2)
    assert tf_py_environment.TFPyEnvironment(py_env).pyenv is py_env


def test_python_environment_and_tensors_agree_on_the_current_step():
    environment = wrap()
    environment.step([0])
    environment.step([0])
    assert environment.pyenv.current_time_step().reward.tolist() == [1.0]


def test_render_gives_a_batch_of_pictures():
    environment = wrap()
    assert environment.render().shape == (1, 2, 3, 3)
    environment.step([0])
    picture = tf.function(environment.render)()
    assert (picture.shape, picture.dtype) == ((1, 2, 3, 3), tf.uint8)
    assert picture.numpy().max() == 1
    assert environment.render("human") is None


def test_state_continues_exactly_in_another_environment():
    for steps in range(5):
        environment = wrap()
        for _ in range(steps):
            environment.step([0])
        state = environment.get_state()
        expected = [numpy_values(environment.step([0])) for _ in range(5)]
        resumed = wrap()
        resumed.set_state(state)
        assert [numpy_values(resumed.step([0])) for _ in range(5)] == expected


def test_restored_current_time_step_is_the_saved_one():
    environment = wrap()
    environment.reset()
    environment.step([0])
    state = environment.get_state()
    environment.step([0])
    environment.set_state(state)
    assert numpy_values(environment.current_time_step()).reward == [1.0]


def test_state_of_an_environment_without_one_names_it():
    class Unknown(classic_control.CartPoleEnv):
        """May hold more state than its base, so no adapter fits."""

    environment = tf_py_environment.TFPyEnvironment(suite_gym.wrap_env(Unknown()))
    with pytest.raises(NotImplementedError, match=r"Unknown\.get_state"):
        environment.get_state()


def test_observation_that_changes_in_place_does_not_change_earlier_tensors():
    shared = np.zeros(2, np.float32)

    def reuse(observation):
        shared[:] = observation
        return ts.transition(shared, 1.0)

    environment = wrap(dict.fromkeys(range(9), reuse), length=9)
    environment.reset()
    first = environment.step([0])
    environment.step([0])
    assert first.observation.numpy().tolist() == [[1.0, 1.0]]

    @tf.function
    def two():
        before = environment.step([0]).observation
        after = environment.step([0]).observation
        return before + 0.0, after

    assert two()[0].numpy().tolist() == [[3.0, 3.0]]


def test_get_tf_env_wraps_what_needs_it():
    environment = utils.get_tf_env(Scripted())
    assert isinstance(environment, tf_py_environment.TFPyEnvironment)
    assert utils.get_tf_env(environment) is environment
    with pytest.raises(ValueError, match="environment: got None of type NoneType"):
        utils.get_tf_env(None)


def test_steps_from_the_tutorials_run():
    environment = tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v0"))
    time_step = environment.reset()
    reward = 0
    for i in range(3):
        time_step = environment.step(tf.constant([i % 2]))
        reward += time_step.reward
    assert reward.numpy().tolist() == [3.0]
    steps = 0
    while not time_step.is_last():
        time_step = environment.step(tf.random.uniform([1], 0, 2, dtype=tf.int32))
        steps += 1
    assert 0 < steps < 200


LINE = gymnasium.spaces.Box(-1, 1, (2,))


class WithSpaces(gymnasium.Env):
    def __init__(self, observation=LINE, action=LINE):
        self.observation_space = observation
        self.action_space = action


@pytest.mark.parametrize(
    ("space", "path", "shape"),
    [
        (gymnasium.spaces.Box(-1, 1, (0,)), "", (0,)),
        (gymnasium.spaces.Box(0, 255, (84, 0), np.uint8), "", (84, 0)),
        (
            gymnasium.spaces.Dict(a=LINE, b=gymnasium.spaces.Box(0, 1, (0,))),
            "/b",
            (0,),
        ),
    ],
)
def test_spaces_without_elements_are_refused(space, path, shape):
    shape = re.escape(str(shape))
    with pytest.raises(
        ValueError, match=f"^time_step_spec/observation{path}: got the shape {shape}"
    ):
        tf_py_environment.TFPyEnvironment(
            suite_gym.wrap_env(WithSpaces(observation=space))
        )
    with pytest.raises(
        ValueError, match=f"^action_spec{path}: got the shape {shape}, an array without"
    ):
        tf_py_environment.TFPyEnvironment(suite_gym.wrap_env(WithSpaces(action=space)))
