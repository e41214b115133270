import collections
import functools
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from tfrl import testing
from tfrl.environments import suite_gym, tf_py_environment, wrappers
from tfrl.replay_buffers import (
    GoalWrapperRelabeler,
    Hindsight,
    HostReward,
    TFPrioritizedReplayBuffer,
    TFUniformReplayBuffer,
)
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

BATCH, LENGTH = 2, 40


def tensor_reward(achieved_goal, desired_goal):
    return tf.reduce_sum(achieved_goal - 2 * desired_goal, axis=-1)


def array_reward(achieved_goal, desired_goal, info):
    assert info == {}
    assert achieved_goal.shape == desired_goal.shape == (len(achieved_goal), 2)
    return np.sum(achieved_goal - 2 * desired_goal, axis=-1)


class Goals(wrappers.GoalReplayEnvWrapper):
    """Rewrites stored steps by the rule of `tensor_reward`; ends at the goal."""

    def __init__(self, is_batched):
        super().__init__(testing.CorridorEnvironment())
        self._is_batched = is_batched

    @property
    def batched(self):
        return self._is_batched

    def get_goal_from_trajectory(self, trajectory):
        return trajectory.observation["achieved_goal"]

    def get_trajectory_with_goal(self, trajectory, goal):
        achieved = trajectory.observation["achieved_goal"]
        return trajectory._replace(
            observation={**trajectory.observation, "desired_goal": goal},
            reward=np.sum(achieved - 2 * goal, -1),
            discount=np.float32(~np.all(achieved == goal, -1)),
        )


HOST_REWARD = HostReward(array_reward)
REWARDS = {
    "tensors": lambda: tensor_reward,
    "host": lambda: HOST_REWARD,
    "wrapper": lambda: GoalWrapperRelabeler(Goals(is_batched=True)),
    "wrapper of one": lambda: GoalWrapperRelabeler(Goals(is_batched=False)),
}


def frames_of_episodes(seed, longest=10):
    """Yields frames of endless episodes; what is achieved tells the frame's number."""
    rng = np.random.default_rng(seed)
    number = 0
    while True:
        length = int(rng.integers(1, longest + 1))
        types = [ts.StepType.FIRST, *[ts.StepType.MID] * (length - 1), ts.StepType.LAST]
        desired = rng.integers(-99, -9, 2).astype(np.float32)
        for i, step_type in enumerate(types):
            yield trajectory.Trajectory(
                step_type,
                {
                    "achieved_goal": np.float32([number, seed]),
                    "desired_goal": desired,
                    "other": np.int64(number),
                },
                np.int64(number),
                (),
                types[i + 1] if i < length else ts.StepType.FIRST,
                np.float32(rng.normal()),
                np.float32(1),
            )
            number += 1


SPEC = tf.nest.map_structure(
    lambda x: tf.TensorSpec(x.shape, x.dtype), next(frames_of_episodes(0))
)


@functools.cache
def filled(kind, reward, frames=101):
    """A buffer and its frames, by column and number, which tests only read."""
    buffer = kind(SPEC, BATCH, LENGTH, seed=1, row_format=Hindsight(reward, 4))
    streams = [frames_of_episodes(b) for b in range(BATCH)]
    held = collections.deque(maxlen=LENGTH)

    write = tf.function(buffer.add_batch, autograph=False)
    for _ in range(frames):
        each = [next(stream) for stream in streams]
        held.append(each)
        write(tf.nest.map_structure(lambda *x: tf.constant(np.stack(x)), *each))
    logs = [{int(each[b].action): each[b] for each in held} for b in range(BATCH)]
    return buffer, logs


def last_of_episode(log, number):
    """The number of the newest frame held of an episode, by walking through it."""
    while number + 1 in log and log[number].step_type != ts.StepType.LAST:
        number += 1
    return number


def check_window(items, ids, log, ends_at_goal):
    """Compares a window `[T]` with a loop; returns the frame whose goal it got."""
    first, last = int(ids[0]), last_of_episode(log, int(ids[0]))
    goal = items.observation["desired_goal"][0]
    relabelled = not np.array_equal(goal, log[first].observation["desired_goal"])
    if relabelled:
        assert first < goal[0] <= last
        assert goal[1] == log[first].observation["achieved_goal"][1]
    for t, number in enumerate(map(int, ids)):
        frame = log[number]
        observation = {**frame.observation}
        reward, discount = frame.reward, frame.discount
        if relabelled and number <= last:
            observation["desired_goal"] = goal
            if number < last:
                after = log[number + 1].observation["achieved_goal"]
                reward = np.sum(after - 2 * goal)
                if ends_at_goal:
                    discount = np.float32(not np.array_equal(after, goal))
        expected = frame._replace(
            observation=observation, reward=reward, discount=discount
        )
        tf.nest.map_structure(
            lambda given, wanted, t=t: np.testing.assert_array_equal(given[t], wanted),
            items,
            expected,
        )
    return int(goal[0]) if relabelled else None


def as_arrays(items):
    return tf.nest.map_structure(np.asarray, items)


@pytest.mark.parametrize(
    ("kind", "reward", "jit_compile"),
    [
        (TFUniformReplayBuffer, "tensors", False),
        pytest.param(
            TFPrioritizedReplayBuffer, "tensors", True, marks=pytest.mark.slow
        ),
        pytest.param(TFPrioritizedReplayBuffer, "host", False, marks=pytest.mark.slow),
        pytest.param(TFUniformReplayBuffer, "host", True, marks=pytest.mark.slow),
        pytest.param(TFUniformReplayBuffer, "wrapper", False, marks=pytest.mark.slow),
        pytest.param(
            TFPrioritizedReplayBuffer, "wrapper", True, marks=pytest.mark.slow
        ),
        pytest.param(
            TFUniformReplayBuffer, "wrapper of one", False, marks=pytest.mark.slow
        ),
    ],
)
def test_goals_and_rewards_are_those_of_a_loop(kind, reward, jit_compile):
    buffer, logs = filled(kind, REWARDS[reward]())
    sample = tf.function(
        lambda seed: buffer.sample(64, 4, seed), jit_compile=jit_compile
    )
    relabelled = windows = 0
    for seed in range(3):
        items, info = sample(tf.constant([seed, 7], tf.int64))
        items, ids = as_arrays(items), info.ids.numpy()
        for n in range(64):
            window = tf.nest.map_structure(lambda x, n=n: x[n], items)
            column = int(window.observation["achieved_goal"][0, 1])
            source = check_window(
                window, ids[n], logs[column], reward.startswith("wrapper")
            )
            relabelled += source is not None
            can_be = last_of_episode(logs[column], int(ids[n, 0])) > ids[n, 0]
            windows += can_be
    # Four of five; its standard deviation is below 0.025.
    assert relabelled / windows == pytest.approx(0.8, abs=0.1)
    assert sample.experimental_get_tracing_count() == 1


@pytest.mark.slow
def test_compiled_samples_are_the_plain_ones():
    buffer, _ = filled(TFUniformReplayBuffer, tensor_reward)
    seed = tf.constant([3, 4], tf.int64)
    plain = as_arrays(buffer.sample(50, 3, seed)[0])
    compiled = tf.function(lambda: buffer.sample(50, 3, seed)[0], jit_compile=True)()
    tf.nest.map_structure(np.testing.assert_array_equal, plain, as_arrays(compiled))


def test_goals_are_uniform_over_the_rest_of_the_episode():
    buffer = TFUniformReplayBuffer(
        SPEC, BATCH, LENGTH, row_format=Hindsight(tensor_reward, 1_000)
    )
    stream = frames_of_episodes(0, longest=10**6)
    each = [next(stream) for _ in range(LENGTH)]
    for frame in each:
        buffer.add_batch(tf.nest.map_structure(lambda x: np.stack([x] * BATCH), frame))
    items, info = buffer.sample(60_000, 2, seed=5)
    first = info.ids[:, 0].numpy()
    goals = items.observation["desired_goal"].numpy()[:, 0, 0]
    for number in (0, 20, 35):
        found = goals[(first == number) & (goals > 0)]
        counts = np.bincount(found.astype(int), minlength=LENGTH)
        assert not counts[: number + 1].any()
        later = counts[number + 1 :]
        # Poisson counts; five standard deviations.
        mean = later.mean()
        assert np.abs(later - mean).max() < 5 * np.sqrt(mean)


@pytest.mark.slow
def test_single_frames_and_single_windows_are_relabelled():
    buffer, logs = filled(TFUniformReplayBuffer, tensor_reward)
    for arguments in ((), (None, 3), (32,)):
        items, info = buffer.sample(*arguments, seed=2)
        ids = info.ids.numpy()
        items = as_arrays(items)
        if len(arguments) == 1:
            rows = range(32)
            windows = [
                tf.nest.map_structure(lambda x, n=n: x[n : n + 1], items) for n in rows
            ]
            all_ids = ids[:, None]
        else:
            whole = np.ndim(ids) == 0
            windows = [tf.nest.map_structure(lambda x: x[None] if whole else x, items)]  # noqa: B023
            all_ids = [np.reshape(ids, [-1])]
        for window, at in zip(windows, all_ids, strict=True):
            column = int(window.observation["achieved_goal"][0, 1])
            check_window(window, at, logs[column], False)


def test_what_is_listed_is_what_was_written():
    buffer, logs = filled(TFUniformReplayBuffer, tensor_reward)
    items = as_arrays(buffer.gather_all())
    for column, log in enumerate(logs):
        for t, frame in enumerate(log.values()):
            tf.nest.map_structure(
                lambda x, y, c=column, t=t: np.testing.assert_array_equal(x[c, t], y),
                items,
                frame,
            )


@pytest.mark.slow
def test_the_datasets_relabel():
    buffer, logs = filled(TFUniformReplayBuffer, HOST_REWARD)
    items, info = next(iter(buffer.as_dataset(32, 3)))
    sources = []
    for n in range(32):
        window = tf.nest.map_structure(lambda x, n=n: x[n].numpy(), items)
        column = int(window.observation["achieved_goal"][0, 1])
        ids = info.ids[n].numpy()
        sources.append(check_window(window, ids, logs[column], False))
    assert any(sources)


@pytest.mark.parametrize(
    "jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_an_error_of_the_users_function_is_raised_as_it_is(jit_compile):
    def compute_reward(achieved_goal, desired_goal, info):
        raise KeyError("is_success")

    buffer, _ = filled(TFUniformReplayBuffer, HostReward(compute_reward))
    sample = tf.function(lambda: buffer.sample(4, 2, 1)[0], jit_compile=jit_compile)
    with pytest.raises(KeyError, match="is_success"), buffer.reraise():
        sample()


def far(achieved_goal, desired_goal, info=None):
    return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 1).astype(float)


def buffer_of_walks(reward):
    """A buffer of 8 walks on a line, of 10 frames, whose rewards are those of `far`."""
    spec = tf.TensorSpec([1])
    spec = SPEC._replace(observation={"achieved_goal": spec, "desired_goal": spec})
    buffer = TFUniformReplayBuffer(spec, 8, 10, row_format=Hindsight(reward))
    goals, ones = np.arange(8, dtype=np.float32)[:, None], np.ones(8, np.int32)
    for step in range(10):
        # The reward is for the next place; the boundary's has no meaning.
        reward = far(np.full_like(goals, step + 1), goals) if step < 9 else 99 * ones
        frame = trajectory.Trajectory(
            ones * (0 if step == 0 else 2 if step == 9 else 1),
            {"achieved_goal": np.full_like(goals, step), "desired_goal": goals},
            np.int64(ones),
            (),
            ones,
            np.float32(reward),
            np.float32(ones),
        )
        buffer.add_batch(frame)
    return buffer


@pytest.mark.parametrize(
    ("compute", "error", "message"),
    [
        (lambda *a: float(far(*a)[0]), ValueError, r"got rewards of shape \(\)"),
        (lambda *a: far(*a)[:, None], ValueError, r"of shape \(72, 1\).*expected \(72"),
        (lambda a, d, info: info["far"], KeyError, "an empty info; compute rewards"),
        (lambda a, d, i: -1.0 if a > d else 0.0, ValueError, "for batches of goals"),
        (lambda *a: far(*a) * np.nan, ValueError, "got .nan nan nan. of float64"),
        (
            lambda a, d, i: -abs(a - d)[:, 0],
            ValueError,
            r"got -1 for .* with 0, .* in 65 of the first 72",
        ),
    ],
)
def test_rewards_unlike_the_environments_are_errors_that_name_the_function(
    compute, error, message
):
    # Pytest compares the error's notes, too. In the last case only 7 of the 72 places
    # are their goals.
    with pytest.raises(error, match=f"(?s)compute_reward.*{message}"):
        buffer_of_walks(HostReward(compute)).check_collected()


def test_rewards_that_rounding_takes_over_a_threshold_are_no_error():
    def rounded(achieved_goal, desired_goal, info):
        reward = far(achieved_goal, desired_goal)
        return reward - (achieved_goal == 3)[:, 0] * (desired_goal == 7)[:, 0]

    for reward in (far, rounded):
        buffer_of_walks(HostReward(reward)).check_collected()


def test_an_environment_without_goals_is_an_error_about_goals():
    with pytest.raises(ValueError, match=r"without goals, .* shape \(4,\).*_step=0"):
        Hindsight.of(suite_gym.load("CartPole-v1"))
    goals = tf.nest.map_structure(lambda _: tf.TensorSpec([2]), SPEC.observation)
    without_reward = mock.Mock(spec=["observation_spec"])
    without_reward.observation_spec.return_value = goals
    with pytest.raises(ValueError, match=r"one without compute_reward, .*write it"):
        Hindsight.of(without_reward)


class WithReward(testing.CorridorEnvironment):
    def compute_reward(self, achieved_goal, desired_goal, info):
        return array_reward(achieved_goal, desired_goal, info)


def test_an_environments_own_functions_are_found():
    wrapped = wrappers.TimeLimit(WithReward(), 5)
    goals = wrappers.TimeLimit(Goals(is_batched=False), 5)
    for environment in (wrapped, goals, tf_py_environment.TFPyEnvironment(wrapped)):
        row_format = Hindsight.of(environment)
        buffer = TFUniformReplayBuffer(SPEC, BATCH, LENGTH, row_format=row_format)
        assert buffer.supports_xla
        assert buffer.calls_python
    with pytest.raises(ValueError, match="expected a GoalReplayEnvWrapper or an"):
        Hindsight.of(testing.CorridorEnvironment())


class NativeLike:
    compute_reward = staticmethod(tensor_reward)


def test_a_native_environments_reward_is_part_of_the_graph():
    buffer = TFUniformReplayBuffer(
        SPEC, BATCH, LENGTH, seed=1, row_format=Hindsight.of(NativeLike())
    )
    for frame in zip(*map(frames_of_episodes, range(BATCH)), strict=False):
        buffer.add_batch(tf.nest.map_structure(lambda *x: np.stack(x), *frame))
        if int(buffer.num_frames()) == buffer.capacity:
            break
    assert not buffer.calls_python
    graph = tf.function(lambda: buffer.sample(8, 2, 1)).get_concrete_function()
    assert not any("PyFunc" in op.type for op in graph.graph.get_operations())


def spec_with(**observation):
    return SPEC._replace(observation={**SPEC.observation, **observation})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (SPEC._replace(observation=tf.TensorSpec([3])), "observation: got TensorSpec"),
        (spec_with(desired_goal=tf.TensorSpec([3])), "two tensors of one shape"),
        (SPEC._replace(reward=tf.TensorSpec([2])), "reward: got TensorSpec"),
    ],
)
def test_specs_without_goals_are_errors(spec, message):
    with pytest.raises(ValueError, match=message):
        TFUniformReplayBuffer(spec, 1, 9, row_format=Hindsight(tensor_reward))


def test_rewards_of_another_shape_are_an_error():
    buffer, _ = filled(TFUniformReplayBuffer, lambda a, d: a - d, frames=9)
    with pytest.raises(ValueError, match=r"got rewards of shape \(8, 2\)"):
        buffer.sample(4, 2)


def test_arguments_that_are_no_functions_are_errors():
    with pytest.raises(TypeError, match="reward_fn: got 3"):
        Hindsight(3)
    with pytest.raises(ValueError, match="goals_per_step: expected an integer"):
        Hindsight(tensor_reward, 0)
    with pytest.raises(TypeError, match="expected a Trajectory"):
        TFUniformReplayBuffer(
            tf.TensorSpec([]), 1, 9, row_format=Hindsight(tensor_reward)
        )
