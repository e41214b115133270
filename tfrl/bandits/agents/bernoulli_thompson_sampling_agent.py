"""Thompson's sampling for rewards that are 0 or 1, without a context."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tfrl.bandits.agents import bandit_agent
from tfrl.bandits.policies import bernoulli_thompson_sampling_policy
from tfrl.policies import utils as policy_utils
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class BernoulliBanditVariableCollection(tf.Module):
    """The parameters of the beta distributions of arms without rows.

    Attributes:
      alpha: The sums of rewards, plus 1, `[A]`.
      beta: The sums of missing rewards, plus 1, `[A]`.
    """

    def __init__(
        self, num_actions: int, dtype: tf.DType = tf.float64, name: str | None = None
    ) -> None:
        """Creates the variables; float32 would not count beyond 2^24."""
        super().__init__(name=name)
        ones = tf.ones([num_actions], dtype)
        self.alpha = tf.Variable(ones, trainable=False, name="alpha")
        self.beta = tf.Variable(ones, trainable=False, name="beta")


class BernoulliThompsonSamplingAgent(bandit_agent.SumsAgent):
    """Keeps the exact posterior of each arm's probability of a reward.

    The prior is uniform, a beta distribution with alpha and beta 1. A row with the
    reward r, clipped to [0, 1], and the weight w adds `w r` to alpha and `w (1 - r)` to
    beta (Chapelle and Li, "An empirical evaluation of Thompson sampling", 2011,
    algorithm 2). The loss is minus the sum of the rewards.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        variable_collection: BernoulliBanditVariableCollection | None = None,
        dtype: tf.DType = tf.float64,
        batch_size: int | None = 1,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        emit_policy_info: Sequence[str] = (),
        name: str | None = None,
        *,
        train_step_counter: tf.Variable | None = None,
        emit_log_probability: bool = False,
        seed: int | None = None,
    ) -> None:
        """Makes the posterior and the policy.

        Args:
          time_step_spec: A `TimeStep` of specs; observations are ignored.
          action_spec: One bounded integer spec of shape `[]`, from 0.
          variable_collection: The posterior; None makes it.
          dtype: The dtype of a posterior that is made.
          batch_size: Has no effect; rows are counted in batches of any size.
          observation_and_action_constraint_splitter: Splits an observation into a pair
            whose second part is a mask of the allowed arms.
          emit_policy_info: The fields of the policy's info to fill in.
          emit_log_probability: Whether the info has the logarithm of the action's
            probability.

        Raises:
          TypeError: `variable_collection` is of another kind.
          ValueError: It has another number of arms.
        """
        del batch_size
        num_actions = policy_utils.get_num_actions_from_tensor_spec(action_spec)
        variable_collection = bandit_agent.as_collection(
            variable_collection, BernoulliBanditVariableCollection, num_actions, dtype
        )
        self._alpha, self._beta = variable_collection.alpha, variable_collection.beta
        policy = bernoulli_thompson_sampling_policy.BernoulliThompsonSamplingPolicy(
            time_step_spec,
            action_spec,
            self._alpha,
            self._beta,
            observation_and_action_constraint_splitter,
            emit_policy_info,
            emit_log_probability=emit_log_probability,
            seed=seed,
        )
        super().__init__(policy, train_step_counter=train_step_counter, name=name)

    @property
    def alpha(self) -> tf.Variable:
        """The sums of rewards, plus 1, `[A]`."""
        return self._alpha

    @property
    def beta(self) -> tf.Variable:
        """The sums of missing rewards, plus 1, `[A]`."""
        return self._beta

    def _add(self, rows: bandit_agent.Rows) -> None:
        dtype = self._alpha.dtype
        reward = tf.clip_by_value(tf.cast(rows.reward, dtype), 0, 1)
        own = tf.one_hot(rows.action, self.num_actions, dtype=dtype)
        own *= tf.cast(rows.weights, dtype)[:, tf.newaxis]
        self._alpha.assign_add(tf.linalg.matvec(own, reward, transpose_a=True))
        self._beta.assign_add(tf.linalg.matvec(own, 1 - reward, transpose_a=True))
