"""The base class of bandits' agents, which learn from rows of single rounds."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import tensorflow as tf

from tfrl.agents import data_converter, tf_agent
from tfrl.bandits.specs.utils import checked_arms
from tfrl.compilation import replicas
from tfrl.policies import greedy_policy, tf_policy
from tfrl.policies import utils as policy_utils
from tfrl.specs import bandit_spec_utils
from tfrl.trajectories import trajectory
from tfrl.utils import common


class Rows(NamedTuple):
    """The rounds of an experience `[B, T, ...]`, as rows `[n, ...]` in order of time.

    Attributes:
      observation: The observations, without masks; arms' features are those of the
        chosen arm alone, `[n, 1, P]`.
      action: The chosen arms, int32 `[n]`; 0 if arms have features.
      reward: The rewards, a nest `[n, ...]`.
      weights: The weights, float32 `[n]`; 0 for resets.
      counts: Whether each row is a round, not a reset between two, bool `[n]`.
      policy_info: The policy's info, `[n, ...]`.
    """

    observation: Any
    action: tf.Tensor
    reward: Any
    weights: tf.Tensor
    counts: tf.Tensor
    policy_info: Any


class BanditAgent(tf_agent.TFAgent):
    """Base of bandits' agents; a subclass writes `_loss_of`, or uses `_rows` itself.

    Experience is `[B, T, ...]` with any T. Each row of a bandit is independent of the
    others, so a reward may come late: a row with its observation (or the features of
    the chosen arm), action, info and reward is all that `train` needs.
    """

    learns_from_rounds = True

    # Whether the loss is that of the rows of all replicas together.
    _loss_is_of_all_replicas = False

    def __init__(
        self,
        policy: tf_policy.TFPolicy,
        *,
        training_data_spec: Any = None,
        **kwargs: Any,
    ) -> None:
        """Makes an agent that acts by one policy, whose specs are the agent's.

        Args:
          policy: The policy.
          training_data_spec: See `TFAgent`; None for what the policy collects, without
            the features of all arms.
          **kwargs: Further arguments of `TFAgent`.
        """
        # Whether the observation has features of the arms.
        self._accepts_per_arm_features = bool(
            getattr(policy, "accepts_per_arm_features", False)
        )
        if training_data_spec is None and self._accepts_per_arm_features:
            training_data_spec = _without_arms(policy.trajectory_spec)
        super().__init__(
            policy.time_step_spec,
            policy.action_spec,
            policy,
            policy,
            train_sequence_length=None,
            training_data_spec=training_data_spec,
            **kwargs,
        )

    @property
    def num_actions(self) -> int:
        """The number of arms."""
        spec: Any = self.action_spec
        return policy_utils.get_num_actions_from_tensor_spec(spec)

    def act_greedily(self) -> None:
        """Makes `policy` a `GreedyPolicy`; `collect_policy` still explores."""
        self._policy = greedy_policy.GreedyPolicy(self.collect_policy)

    def _preprocess_sequence(self, experience: Any) -> Any:
        """Leaves out the features of all arms; the info has those of the chosen one."""
        if not self._accepts_per_arm_features:
            return experience
        return _without_arms(experience)

    def _chosen_features(self, policy_info: Any) -> Any:
        """Returns the features of the chosen arms, `[B, T, P]`."""
        return policy_info.chosen_arm_features

    def _as_frames(self, experience: Any) -> trajectory.Trajectory:
        """Returns the experience of `train`; refuses another kind."""
        convert = data_converter.AsTrajectory(self.data_context, sequence_length=None)
        return convert(experience)

    def _rows(self, experience: trajectory.Trajectory, weights: Any) -> Rows:
        """Returns the rows of experience.

        Args:
          experience: Frames `[B, T, ...]`; features of all arms are ignored.
          weights: A scalar, `[B]` or `[B, T]`; None for 1.

        Raises:
          ValueError: The experience has no rounds, or, outside of graphs, an arm that
            there is not.
        """
        experience = self._as_frames(experience)
        batch = experience.step_type.shape
        if 0 in batch:
            raise ValueError(
                f"experience: got frames {tuple(batch)} without any round, expected "
                "[B, T] with at least one. If they come from a replay buffer, pass its "
                "add_batch to the driver as an observer, or run the driver first."
            )
        splitter = self.policy.observation_and_action_constraint_splitter
        observation = experience.observation
        if splitter is not None:
            observation, _ = splitter(observation)
        action = tf.nest.map_structure(
            lambda arm: tf.cast(arm, tf.int32), experience.action
        )
        is_number = tf.is_tensor(action) and action.shape.rank == len(batch)
        if is_number and tf.executing_eagerly():
            # Compiled, an arm that is none would count as another one.
            checked_arms("experience.action", action.numpy(), self.num_actions)
        if self._accepts_per_arm_features:
            observation = dict(observation)
            key = bandit_spec_utils.PER_ARM_FEATURE_KEY
            observation[key] = tf.nest.map_structure(
                lambda x: x[:, :, tf.newaxis],
                self._chosen_features(experience.policy_info),
            )
            observation.pop(bandit_spec_utils.NUM_ACTIONS_FEATURE_KEY, None)
            action = tf.zeros_like(action)
        given = tf.cast(1.0 if weights is None else weights, tf.float32)
        if given.shape.rank == 1:
            given = given[:, tf.newaxis]
        counts = ~experience.is_reset()  # A bandit goes from LAST to LAST.
        rows = Rows(
            observation,
            action,
            experience.reward,
            given * tf.cast(counts, tf.float32),
            counts,
            experience.policy_info,
        )
        return tf.nest.map_structure(_in_time, rows)

    def _all_rows(self, experience: trajectory.Trajectory, weights: Any) -> Rows:
        """Returns the rows of all replicas; see `_rows`."""
        return replicas.gathered(self._rows(experience, weights))

    def _loss(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf_agent.LossInfo:
        """Returns the loss of the rows, and writes it as a summary."""
        rows_of = self._all_rows if self._loss_is_of_all_replicas else self._rows
        loss = self._loss_of(rows_of(experience, weights), training)
        self._summaries.write_losses(loss, {})
        return tf_agent.LossInfo(loss, extra=())

    def _loss_of(self, rows: Rows, training: bool) -> tf.Tensor:
        """Returns the loss of rows, a scalar."""
        raise NotImplementedError


class SumsAgent(BanditAgent):
    """Base of agents whose state are sums over rows, which a subclass adds in `_add`.

    The loss is minus the weighted sum of the rewards, unless it is overridden.
    """

    _loss_is_of_all_replicas = True

    @abc.abstractmethod
    def _add(self, rows: Rows) -> None:
        """Adds rows to the sums."""

    def _train(
        self, experience: Any, weights: tf.Tensor | None = None
    ) -> tf_agent.LossInfo:
        info = self._loss(experience, weights)
        with tf.control_dependencies([info.loss]):
            self._add(self._all_rows(experience, weights))
        self._count()
        return info

    def _loss_of(self, rows: Rows, training: bool) -> tf.Tensor:
        del training
        return -tf.reduce_sum(rows.weights * tf.cast(rows.reward, tf.float32))


def mean_over_rows(values: tf.Tensor, rows: Rows) -> tf.Tensor:
    """Returns the sum of weighted values `[n]` over the number of rows that count."""
    number = tf.reduce_sum(tf.cast(rows.counts, tf.float32))
    return tf.math.divide_no_nan(tf.reduce_sum(rows.weights * values), number)


def _without_arms(data: Any) -> Any:
    """Returns a trajectory without the features of all arms, also beside a mask."""
    observation = data.observation
    if isinstance(observation, tuple):  # A pair of an observation and a mask.
        first, *others = observation
        inner = bandit_spec_utils.drop_arm_observation(data._replace(observation=first))
        return data._replace(observation=(inner.observation, *others))
    return bandit_spec_utils.drop_arm_observation(data)


def _in_time(column: tf.Tensor) -> tf.Tensor:
    """Reshapes a column `[B, T, ...]` to `[T B, ...]`, in order of time."""
    moved = common.transpose_batch_time(column)
    return tf.reshape(moved, [-1, *moved.shape[2:]])


def as_collection(collection: Any, kind: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns a collection of variables of a class, for None a new one.

    Args:
      collection: The collection, or None.
      kind: The class.
      *args: Arguments of the class for a new one.
      **kwargs: Further arguments of the class.

    Raises:
      TypeError: The collection is of another class.
    """
    if collection is None:
        return kind(*args, **kwargs)
    if not isinstance(collection, kind):
        raise TypeError(
            f"variable_collection: got a {type(collection).__name__}, expected a "
            f"{kind.__name__}; make one, or leave it out."
        )
    return collection
