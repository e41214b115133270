"""Values predicted against returns that came, counted by hand."""

import numpy as np
import tensorflow as tf

from tests.tf_counting import TFCountingEnvironment
from tfrl.eval import Evaluator, value_check
from tfrl.policies.random_tf_policy import RandomTFPolicy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

ACTION_SPEC = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)


class _Truncated(TFCountingEnvironment):
    """Ends its episodes with the discount 1."""

    def _step(self, action):
        return super()._step(action)._replace(discount=tf.ones([self.batch_size]))


def _run(kind, lengths, values):
    environment = kind(
        lengths,
        action_spec=ACTION_SPEC,
        reward=lambda count, action: tf.ones_like(count),
    )
    policy = RandomTFPolicy(environment.time_step_spec(), ACTION_SPEC)
    check = value_check.ValueCheck(values, 0.5)
    return Evaluator(environment, policy, 2, seed=0, check=check).run()


def _value(time_step):
    """Returns 7 at first steps, and 4 at others, `[B]`."""
    return tf.where(time_step.is_first(), 7.0, 4.0)


def test_terminated_episodes_have_the_discounted_sum_of_their_rewards():
    result = _run(TFCountingEnvironment, [[1], [3]], _value)
    np.testing.assert_allclose(result.predicted, [7.0, 7.0])
    # 1, and 1 + 0.5 + 0.25.
    np.testing.assert_allclose(result.realized, [1.0, 1.75])
    np.testing.assert_array_equal(result.terminated, [True, True])
    np.testing.assert_allclose(result.returns, [1.0, 3.0])


def test_truncated_episodes_add_the_value_of_their_last_step():
    result = _run(_Truncated, [[1], [3]], _value)
    # 1 + 0.5 * 4, and 1 + 0.5 + 0.25 + 0.125 * 4.
    np.testing.assert_allclose(result.realized, [3.0, 2.25])
    np.testing.assert_array_equal(result.terminated, [False, False])


def test_an_evaluation_without_values_predicts_nothing():
    environment = TFCountingEnvironment([[2]], action_spec=ACTION_SPEC)
    policy = RandomTFPolicy(environment.time_step_spec(), ACTION_SPEC)
    result = Evaluator(environment, policy, 1, seed=0).run()
    assert result.predicted is None
    assert result.realized is None


def test_an_agent_without_values_has_no_check():
    class Agent:
        def predicted_returns(self, time_step: ts.TimeStep):
            return None

    environment = TFCountingEnvironment([[2]], action_spec=ACTION_SPEC)
    assert value_check.of_agent(Agent(), environment) is None
