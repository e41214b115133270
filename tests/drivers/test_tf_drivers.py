"""The drivers of TF environments, with members whose episodes have fixed lengths."""

import time

import numpy as np
import pytest
import tensorflow as tf

from tests.tf_counting import TFCountingEnvironment
from tfrl.drivers import DynamicEpisodeDriver, DynamicStepDriver, TFDriver
from tfrl.environments.py_environment import PyEnvironment
from tfrl.environments.tf_py_environment import TFPyEnvironment
from tfrl.metrics import tf_metrics
from tfrl.policies.random_tf_policy import RandomTFPolicy
from tfrl.policies.tf_policy import TFPolicy
from tfrl.replay_buffers.tf_uniform_replay_buffer import TFUniformReplayBuffer
from tfrl.specs import tensor_spec
from tfrl.testing import CountingEnvironment
from tfrl.train import host_observer
from tfrl.trajectories import time_step as ts
from tfrl.trajectories.policy_step import PolicyStep
from tfrl.utils import common

FIRST, MID, LAST = 0, 1, 2
TIME_STEP_SPEC = ts.time_step_spec(tf.TensorSpec([], tf.int32))
ACTION_SPEC = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 99)


def counting_environment(*lengths):
    """The episodes of member `i` have `lengths[i]` steps."""
    return TFCountingEnvironment(lengths, action_spec=ACTION_SPEC)


class CountingPolicy(TFPolicy):
    """Acts with its state, which counts the actions of the episode."""

    def __init__(self):
        super().__init__(TIME_STEP_SPEC, ACTION_SPEC, tf.TensorSpec([], tf.int32))

    def _variables(self):
        return []

    def _action(self, time_step, policy_state, seed):
        return PolicyStep(policy_state, policy_state + 1, ())


class Recorder:
    """A Python observer, which cannot work in a graph."""

    def __init__(self):
        self.seen = []

    def __call__(self, trajectory):
        self.seen.append(tf.nest.map_structure(lambda x: x.numpy(), trajectory))

    def kinds(self, member=0):
        return [(t.step_type[member], t.next_step_type[member]) for t in self.seen]


def random_policy(seed=0):
    return RandomTFPolicy(TIME_STEP_SPEC, ACTION_SPEC, seed=seed)


EPISODE = [(FIRST, MID), (MID, MID), (MID, LAST)]
BOUNDARY = [(LAST, FIRST)]


def test_step_driver_observes_boundaries_but_does_not_count_them():
    recorder = Recorder()
    env = counting_environment(3)
    DynamicStepDriver(env, random_policy(), [recorder], num_steps=4).run()
    assert recorder.kinds() == [*EPISODE, *BOUNDARY, (FIRST, MID)]


def test_step_driver_overshoots_by_less_than_the_batch():
    steps = tf_metrics.EnvironmentSteps()
    env = counting_environment(9, 9, 9, 9)
    DynamicStepDriver(env, random_policy(), [steps], num_steps=5).run()
    assert steps.result() == 8


def test_step_driver_counts_each_member_by_itself():
    # Steps a batch: 2, 2, then 1 beside the boundary of member 0, then 1 beside that
    # of member 1.
    recorder = Recorder()
    env = counting_environment(2, 3)
    DynamicStepDriver(env, random_policy(), [recorder], num_steps=6).run()
    assert [t.is_boundary().tolist() for t in recorder.seen] == [
        [False, False],
        [False, False],
        [True, False],
        [False, True],
    ]


def test_step_driver_continues_from_the_current_time_step():
    env, recorder = counting_environment(3), Recorder()
    driver = DynamicStepDriver(env, random_policy(), [recorder], num_steps=2)
    driver.run()
    driver.run()
    assert recorder.kinds() == [*EPISODE, *BOUNDARY, (FIRST, MID)]
    assert env.num_resets == 0


def test_episode_driver_resets_and_ends_one_step_after_the_last():
    env, recorder = counting_environment(3), Recorder()
    env.step(tf.constant([0]))
    driver = DynamicEpisodeDriver(env, random_policy(), [recorder], num_episodes=1)
    time_step, _ = driver.run()
    assert recorder.kinds() == EPISODE + BOUNDARY
    assert env.num_resets == 1
    assert bool(time_step.is_first())


def test_episode_driver_takes_the_number_of_episodes_at_run():
    env, recorder = counting_environment(3), Recorder()
    driver = DynamicEpisodeDriver(env, random_policy(), [recorder], num_episodes=1)
    driver.run(num_episodes=2)
    assert recorder.kinds() == 2 * (EPISODE + BOUNDARY)


def test_episode_driver_sums_episodes_over_the_batch():
    episodes = tf_metrics.NumberOfEpisodes()
    env = counting_environment(2, 2)
    DynamicEpisodeDriver(env, random_policy(), [episodes], num_episodes=2).run()
    assert episodes.result() == 2


@pytest.mark.parametrize("disable_tf_function", [False, True])
def test_tf_driver_ends_at_the_first_limit(disable_tf_function):
    def run(**limits):
        env, steps = counting_environment(3), tf_metrics.EnvironmentSteps()
        driver = TFDriver(
            env,
            random_policy(),
            [steps],
            disable_tf_function=disable_tf_function,
            **limits,
        )
        driver.run(env.reset())
        return steps.result()

    assert run(max_steps=4) == 4
    assert run(max_episodes=2) == 6
    assert run(max_steps=4, max_episodes=1) == 3
    # Of other integer types, and more than int32 holds.
    assert run(max_steps=np.int64(4), max_episodes=np.int32(2)) == 4
    assert run(max_steps=2**40, max_episodes=1) == 3


class PaddedEnvironment(TFCountingEnvironment):
    """Pads each episode of one step with two more LAST steps."""

    def __init__(self):
        super().__init__([3], action_spec=ACTION_SPEC)

    def _current_time_step(self):
        time_step = super()._current_time_step()
        is_first = time_step.observation == 0
        return time_step._replace(step_type=tf.where(is_first, [FIRST], [LAST]))


PADDED = [(FIRST, LAST), (LAST, LAST), (LAST, LAST), (LAST, FIRST)]


def test_padding_is_no_episode_of_the_episode_driver():
    env, recorder = PaddedEnvironment(), Recorder()
    DynamicEpisodeDriver(env, random_policy(), [recorder], num_episodes=2).run()
    assert recorder.kinds() == PADDED + PADDED


def test_padding_is_no_episode_of_the_tf_driver():
    env, recorder = PaddedEnvironment(), Recorder()
    TFDriver(env, random_policy(), [recorder], max_episodes=2).run(env.reset())
    assert recorder.kinds() == PADDED + PADDED


def test_a_subclass_of_tf_driver_may_loop_until_the_limits_by_itself():
    class Own(TFDriver):
        def run(self, time_step, policy_state=()):
            steps = tf.constant(0.0)
            while steps < self._max_steps and steps < self._max_episodes:
                steps += 1.0
            return steps, policy_state

    own = Own(counting_environment(2), random_policy(), [], max_steps=3)
    assert float(own.run(None)[0]) == 3.0


def test_tf_driver_without_limit_is_refused():
    with pytest.raises(ValueError, match="max_steps, max_episodes: got None and None"):
        TFDriver(counting_environment(3), random_policy(), [])


def test_maximum_iterations_bounds_the_loop():
    env, steps = counting_environment(3), tf_metrics.EnvironmentSteps()
    DynamicStepDriver(env, random_policy(), [steps], num_steps=100).run(
        maximum_iterations=3
    )
    assert steps.result() == 3


def test_time_step_and_policy_state_are_carried_through():
    env, recorder = counting_environment(9), Recorder()
    driver = DynamicStepDriver(env, CountingPolicy(), [recorder], num_steps=2)
    time_step, policy_state = driver.run(env.reset(), tf.constant([5]))
    # The policy's shell starts the state anew at FIRST, whatever was given.
    driver.run(time_step, policy_state)
    assert [int(t.action[0]) for t in recorder.seen] == [0, 1, 2, 3]


def test_transition_observers_see_both_time_steps():
    seen = []
    env = counting_environment(9)
    DynamicStepDriver(
        env, random_policy(), transition_observers=[seen.append], num_steps=2
    ).run()
    assert [int(now.observation[0]) for now, _, _ in seen] == [0, 1]
    assert [int(later.observation[0]) for _, _, later in seen] == [1, 2]


def buffer_and_metrics(policy, batch_size):
    buffer = TFUniformReplayBuffer(policy.trajectory_spec, batch_size, max_length=50)
    return buffer, [tf_metrics.EnvironmentSteps(), tf_metrics.NumberOfEpisodes()]


def test_eager_runs_trace_once_when_observers_allow():
    env, policy = counting_environment(3), random_policy()
    buffer, metrics = buffer_and_metrics(policy, 1)
    driver = DynamicStepDriver(env, policy, [buffer.add_batch, *metrics], num_steps=2)
    time_step, policy_state = driver.run()
    for _ in range(3):
        time_step, policy_state = driver.run(time_step, policy_state)
    driver.run()
    assert driver._traced_loop.experimental_get_tracing_count() == 1
    assert metrics[0].result() == 10
    # 10 steps in episodes of 3 cross 3 boundaries.
    assert buffer.num_frames() == 13


def test_python_observers_make_an_eager_run_step_eagerly():
    recorder, steps = Recorder(), tf_metrics.EnvironmentSteps()
    env = counting_environment(9)
    driver = DynamicStepDriver(env, random_policy(), [recorder, steps], num_steps=2)
    driver.run()
    driver.run()
    assert len(recorder.seen) == 4
    assert steps.result() == 4
    assert driver._traced_loop.experimental_get_tracing_count() == 0


@pytest.mark.parametrize("name", ["observers", "transition_observers"])
def test_a_python_observer_in_the_callers_function_is_refused(name):
    env = counting_environment(9)
    driver = DynamicStepDriver(env, random_policy(), **{name: [[].append]})
    with pytest.raises(ValueError, match=f"{name}: got .* which runs in Python alone"):
        tf.function(driver.run)()


@pytest.mark.cpu
@pytest.mark.parametrize("jit_compile", [None, False, True])
def test_a_host_observer_sees_every_step(jit_compile):
    """In the driver's own function, and in the caller's."""
    frames, transitions = [], []
    observer, of_transitions = map(host_observer, (frames.append, transitions.append))
    driver = DynamicStepDriver(
        counting_environment(3), random_policy(), [observer], [of_transitions], 4
    )
    run = driver.run
    if jit_compile is not None:
        run = tf.function(run, jit_compile=jit_compile)
    run()
    assert [f.observation.tolist() for f in frames] == [[0], [1], [2], [3], [0]]
    assert [later.observation[0] for _, _, later in transitions] == [1, 2, 3, 0, 1]
    if jit_compile is None:
        assert driver._traced_loop.experimental_get_tracing_count() == 1


def test_a_host_observers_own_error_reaches_the_caller():
    error = ZeroDivisionError("the observer's own")

    def fail(trajectory):
        raise error

    driver = DynamicStepDriver(
        counting_environment(3), random_policy(), [host_observer(fail)]
    )
    with pytest.raises(ZeroDivisionError, match="the observer's own"):
        driver.run()


def test_episode_counts_do_not_retrace():
    driver = DynamicEpisodeDriver(counting_environment(3), random_policy())
    for num_episodes in (1, 2, np.int64(3), tf.Variable(2)):
        driver.run(num_episodes=num_episodes)
    assert driver._traced_loop.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("autograph", [True, False])
def test_run_in_the_callers_function(autograph):
    env, policy = counting_environment(2, 3), random_policy()
    buffer, metrics = buffer_and_metrics(policy, 2)
    driver = DynamicStepDriver(env, policy, [buffer.add_batch, *metrics], num_steps=4)
    run = tf.function(driver.run, autograph=autograph)
    for _ in range(3):
        run()
    assert run.experimental_get_tracing_count() == 1
    assert metrics[0].result() == 12
    items = buffer.gather_all()
    assert items.step_type.numpy().tolist() == [
        [0, 1, 2, 0, 1, 2, 0, 1],
        [0, 1, 1, 2, 0, 1, 1, 2],
    ]


@pytest.mark.cpu
def test_loop_compiles_with_xla():
    env, steps = counting_environment(2, 3), tf_metrics.EnvironmentSteps()
    average = tf_metrics.AverageReturnMetric(batch_size=2)
    driver = DynamicStepDriver(env, random_policy(), [steps, average], num_steps=6)
    tf.function(driver.run, jit_compile=True)()
    assert steps.result() == 6
    assert average.result() == ((1 + 2) + (1 + 2 + 3)) / 2


def actions_of_a_run(policy, **kwargs):
    recorder = Recorder()
    env = counting_environment(9)
    DynamicStepDriver(env, policy, [recorder], num_steps=6).run(**kwargs)
    return [int(t.action[0]) for t in recorder.seen]


def test_seed_decides_the_run_whatever_the_policys_stream():
    policy = random_policy()
    first = actions_of_a_run(policy, seed=1)
    assert actions_of_a_run(policy, seed=1) == first
    assert actions_of_a_run(policy, seed=2) != first
    assert len(set(first)) > 1


def test_without_seed_the_policys_stream_goes_on():
    policy = random_policy()
    first, second = actions_of_a_run(policy), actions_of_a_run(policy)
    assert first != second
    policy = random_policy()
    assert [actions_of_a_run(policy), actions_of_a_run(policy)] == [first, second]


def test_a_python_environment_is_refused():
    class Environment(PyEnvironment):
        observation_spec = action_spec = _reset = _step = lambda self: None

    with pytest.raises(TypeError, match=r"env: got Environment, .*TFPyEnvironment"):
        DynamicStepDriver(Environment(), random_policy())


@pytest.mark.parametrize("observer", [tf_metrics.EnvironmentSteps(), print])
def test_an_environments_own_error_reaches_the_caller(observer):
    error = ZeroDivisionError("the environment's own")
    env = TFPyEnvironment(CountingEnvironment(errors={1: error}))
    with pytest.raises(ZeroDivisionError, match="the environment's own"):
        DynamicStepDriver(env, random_policy(), [observer]).run()


class SlowToReset(CountingEnvironment):
    """Whatever does not wait for a reset comes before its end."""

    def _reset(self):
        time.sleep(0.001)
        return super()._reset()


def run_from_reset(driver):
    """The run of a driver that needs a time step."""
    return lambda: driver.run(driver.env.reset())


# Each run has two episodes of three steps at least.
DRIVERS = {
    "steps": (DynamicStepDriver, {"num_steps": 6}, lambda driver: driver.run),
    "episodes": (DynamicEpisodeDriver, {"num_episodes": 2}, lambda driver: driver.run),
    "tf_driver": (TFDriver, {"max_steps": 6}, run_from_reset),
}


@pytest.mark.cpu
@pytest.mark.parametrize("kind", DRIVERS)
def test_a_traced_run_steps_after_its_first_time_step_whatever_acts(kind):
    environment = TFPyEnvironment(SlowToReset())
    fresh = environment.get_state()
    make, limits, run_of = DRIVERS[kind]
    seen = []
    # It does not look at the time step, so nothing else joins the reset and the steps.
    policy = RandomTFPolicy(environment.time_step_spec(), environment.action_spec())
    observers = [host_observer(lambda frame: seen.append(int(frame.observation[0])))]
    run = common.function(run_of(make(environment, policy, observers, **limits)))
    for i in range(50):
        environment.set_state(fresh)
        if i % 2:
            environment.reset()
        seen.clear()
        with environment.reraise():
            run()
        assert seen[:7] == [0, 1, 2, 3, 0, 1, 2]
