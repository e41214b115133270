"""Evaluator, in environments whose episodes have scripted lengths."""

import signal

import numpy as np
import pytest
import tensorflow as tf

from tests.tf_counting import TFCountingEnvironment
from tfrl.environments.py_environment import PyEnvironment
from tfrl.eval import Evaluator, evaluate
from tfrl.policies.random_tf_policy import RandomTFPolicy
from tfrl.policies.tf_policy import TFPolicy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories.policy_step import PolicyStep
from tfrl.utils import call_sizes

LAST = 2
TIME_STEP_SPEC = ts.time_step_spec(tf.TensorSpec([], tf.int32))
ACTION_SPEC = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 99)


class ScriptedEnvironment(TFCountingEnvironment):
    """Rewards a step with its action."""

    def __init__(self, lengths):
        super().__init__(
            lengths, action_spec=ACTION_SPEC, reward=lambda count, action: action
        )


class ConstantPolicy(TFPolicy):
    """Takes the action that its variable says."""

    def __init__(self, action=1):
        super().__init__(TIME_STEP_SPEC, ACTION_SPEC)
        self.value = tf.Variable(action)

    def _variables(self):
        return [self.value]

    def _action(self, time_step, policy_state, seed):
        return PolicyStep(tf.fill(tf.shape(time_step.step_type), self.value), (), ())


class CountingPolicy(TFPolicy):
    """Acts with its state, which counts the actions of the episode."""

    def __init__(self):
        super().__init__(TIME_STEP_SPEC, ACTION_SPEC, tf.TensorSpec([], tf.int32))

    def _variables(self):
        return []

    def _action(self, time_step, policy_state, seed):
        return PolicyStep(policy_state, policy_state + 1, ())


def test_every_environment_contributes_its_first_episodes():
    # The first four episodes to end have 1 step each, all of member 0.
    env = ScriptedEnvironment([[1, 1, 1, 1, 1, 1], [10, 4, 9, 9, 9, 9]])
    result = Evaluator(env, ConstantPolicy(), num_episodes=4).run()
    assert result.lengths.tolist() == [1, 1, 10, 4]
    assert result.returns.tolist() == [1, 1, 10, 4]


def test_mean_length_is_unbiased_where_taking_the_first_to_end_is_not():
    rng = np.random.default_rng(0)
    lengths = rng.choice([1, 99], size=(8, 25))
    result = Evaluator(ScriptedEnvironment(lengths), ConstantPolicy(), 200).run()
    assert result.mean == lengths.mean()


def test_number_of_episodes_need_not_divide_by_the_batch():
    env = ScriptedEnvironment([[1, 2], [3, 4], [5, 6]])
    result = Evaluator(env, ConstantPolicy(), num_episodes=4).run()
    assert result.lengths.tolist() == [1, 2, 3, 5]
    result = Evaluator(env, ConstantPolicy(), num_episodes=2).run()
    assert result.lengths.tolist() == [1, 3]


def test_padding_after_an_episode_is_no_other_episode():
    class PaddedEnvironment(ScriptedEnvironment):
        """Ends an episode after two steps; further ones are padding."""

        def _current_time_step(self):
            time_step = super()._current_time_step()
            count = time_step.observation
            return time_step._replace(
                step_type=tf.where(count >= 2, LAST, time_step.step_type),
                reward=tf.where(count > 2, 0.0, time_step.reward),
            )

    env = PaddedEnvironment([[4]])
    result = Evaluator(env, ConstantPolicy(3), num_episodes=3).run()
    assert result.lengths.tolist() == [2, 2, 2]
    assert result.returns.tolist() == [6, 6, 6]


def test_result_has_documented_dtypes_and_statistics():
    env = ScriptedEnvironment([[1, 2, 6]])
    result = Evaluator(env, ConstantPolicy(), num_episodes=3)()
    assert result.returns.dtype == np.float32
    assert result.lengths.dtype == np.int64
    assert (result.mean, result.median) == (3, 2)
    assert result.std == pytest.approx(np.std([1, 2, 6]), rel=1e-6)


def test_policy_state_starts_anew_with_each_episode():
    env = ScriptedEnvironment([[3, 4]])
    result = Evaluator(env, CountingPolicy(), num_episodes=2).run()
    assert result.returns.tolist() == [0 + 1 + 2, 0 + 1 + 2 + 3]


def test_runs_reset_the_environment_follow_the_weights_and_trace_once():
    env, policy = ScriptedEnvironment([[2, 3], [4, 5]]), ConstantPolicy(1)
    evaluator = Evaluator(env, policy, num_episodes=4)
    first = evaluator.run()
    policy.value.assign(10)
    second = evaluator.run()
    assert second.lengths.tolist() == first.lengths.tolist()
    assert second.returns.tolist() == (10 * first.returns).tolist()
    assert evaluator._evaluate.experimental_get_tracing_count() == 1


def test_the_seed_decides_random_choices():
    def returns(seed, policy_seed=None):
        policy = RandomTFPolicy(TIME_STEP_SPEC, ACTION_SPEC, seed=policy_seed)
        evaluator = Evaluator(ScriptedEnvironment([[5, 7]]), policy, 2, seed=seed)
        first, second = evaluator.run(), evaluator.run()
        assert first.returns.tolist() == second.returns.tolist()
        return first.returns.tolist()

    assert returns(1, policy_seed=1) == returns(1, policy_seed=2)
    assert returns(1) != returns(2)


def test_random_choices_differ_between_steps():
    policy = RandomTFPolicy(TIME_STEP_SPEC, ACTION_SPEC)
    env = ScriptedEnvironment([[1, 1, 1, 1, 1, 1]])
    result = Evaluator(env, policy, num_episodes=6, seed=0).run()
    assert len(set(result.returns.tolist())) > 1


def test_the_division_into_calls_shows_in_no_result(monkeypatch):
    def run():
        policy = RandomTFPolicy(TIME_STEP_SPEC, ACTION_SPEC)
        env = ScriptedEnvironment([[7, 30], [11, 2], [3, 40]])
        return Evaluator(env, policy, num_episodes=5, seed=3).run()

    monkeypatch.setattr(call_sizes.CallSizes, "choose", lambda self, left: left)
    whole = run()
    monkeypatch.setattr(call_sizes.CallSizes, "choose", lambda self, left: min(left, 6))
    cut = run()
    assert whole.lengths.tolist() == cut.lengths.tolist() == [7, 30, 11, 2, 3]
    assert whole.returns.tolist() == cut.returns.tolist()
    assert whole.num_cut == 0


def test_at_the_limit_of_steps_running_episodes_count_as_they_are():
    """And those that have not begun do not count."""
    env = ScriptedEnvironment([[3, 90], [90, 90], [9, 90], [4, 2]])
    evaluator = Evaluator(env, ConstantPolicy(2), num_episodes=8)
    with pytest.warns(RuntimeWarning) as warned:
        result = evaluator.run(max_steps=9)
    # The fourth step of the first environment is a reset, the fifth of the last, too.
    assert result.lengths.tolist() == [3, 5, 9, 9, 4, 2]
    assert result.returns.tolist() == [6, 10, 18, 18, 8, 4]
    assert result.num_cut == 2
    assert str(warned[0].message) == (
        "max_steps: an evaluation ended at its limit of 9 steps of each environment, "
        "after 4 of 8 episodes. 2 that had not ended count with their returns so far. "
        "End episodes with a TimeLimit, or give another max_steps."
    )


@pytest.mark.parametrize("max_steps", [10, 11])
def test_an_episode_that_was_only_reset_has_not_begun(max_steps):
    # The first ten steps end the first episode; the eleventh resets.
    env = ScriptedEnvironment([[10, 10, 10]])
    with pytest.warns(RuntimeWarning, match="after 1 of 3 episodes. 0 that"):
        result = Evaluator(env, ConstantPolicy(99), 3).run(max_steps)
    assert result.returns.tolist() == [990]
    assert (result.lengths.tolist(), result.num_cut) == ([10], 0)


def supervised_run(evaluator, max_steps, between_calls=lambda *told: None):
    limits = evaluate.Supervision(max_steps, "max_eval_steps", between_calls)
    with evaluate.supervised(limits):
        return evaluator.run()


def test_a_supervisor_limits_an_evaluation_and_is_told_how_far_it_is():
    env, seen = ScriptedEnvironment([[4, 10**6], [5, 5]]), []
    evaluator = Evaluator(env, ConstantPolicy(), num_episodes=4)
    with pytest.warns(RuntimeWarning, match="max_eval_steps: an evaluation ended at"):
        result = supervised_run(evaluator, 50, lambda *told: seen.append(told))
    assert result.lengths.tolist() == [4, 45, 5, 5]
    assert seen[-1] == (3, 4, 50)
    assert evaluate.current_supervision() is None


def test_a_supervisor_may_leave_the_limit_to_the_evaluator(monkeypatch):
    monkeypatch.setattr(evaluate, "_STEPS_PER_EPISODE", 20)
    env = ScriptedEnvironment([[4, 10**6]])
    evaluator = Evaluator(env, ConstantPolicy(), num_episodes=2)
    with pytest.warns(RuntimeWarning, match="its limit of 40 steps"):
        result = supervised_run(evaluator, None)
    assert result.lengths.tolist() == [4, 35]


def test_an_interrupt_ends_an_evaluation():
    def reward(count, action):
        tf.numpy_function(
            lambda n: signal.raise_signal(signal.SIGINT) if n == 500 else None,
            [count[0]],
            [],
        )
        return action

    env = TFCountingEnvironment([[10**6]], action_spec=ACTION_SPEC, reward=reward)
    # A process that was started in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            Evaluator(env, ConstantPolicy(), num_episodes=1).run()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


VECTOR = tf.TensorSpec([2], tf.float32)


@pytest.mark.parametrize(
    ("spec", "reward", "expected"),
    [
        (VECTOR, lambda r: tf.stack([r, r], 1), 6),
        (
            {"a": VECTOR, "b": VECTOR},
            lambda r: {k: tf.stack([r, r], 1) for k in "ab"},
            12,
        ),
    ],
    ids=["vector", "nest"],
)
def test_many_rewards_are_summed(spec, reward, expected):
    class Environment(ScriptedEnvironment):
        def _current_time_step(self):
            time_step = super()._current_time_step()
            return time_step._replace(reward=reward(time_step.reward))

    env = Environment([[3]])
    env._time_step_spec = ts.time_step_spec(tf.TensorSpec([], tf.int32), spec)
    policy = ConstantPolicy()
    policy._time_step_spec = env.time_step_spec()
    assert Evaluator(env, policy, 1).run().returns.tolist() == [expected]


def test_bad_arguments_are_refused():
    class Environment(PyEnvironment):
        observation_spec = action_spec = _reset = _step = lambda self: None

    with pytest.raises(TypeError, match=r"environment: got Environment.*TFPyEnv"):
        Evaluator(Environment(), ConstantPolicy(), 1)
    with pytest.raises(ValueError, match=r"num_episodes: .* at least 1, got 0"):
        Evaluator(ScriptedEnvironment([[1]]), ConstantPolicy(), 0)
