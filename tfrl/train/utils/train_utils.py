"""The train step, and functions that wait for files of other processes."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.policies import py_tf_eager_policy
from tfrl.policies.saving import saved_model
from tfrl.utils import summaries

_logger = logging.getLogger(__name__)

# Looks every second, for a day.
_SLEEP_TIME_SECS = 1
_NUM_RETRIES = 24 * 60 * 60


def create_train_step() -> tf.Variable:
    """Returns a new counter of train steps, int64, for an agent and its learner.

    With a `tf.distribute` strategy, call it in the strategy's scope.
    """
    return tf.Variable(
        0,
        trainable=False,
        dtype=tf.int64,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        shape=(),
        name="train_step",
    )


def create_staleness_metrics_after_train_step_fn(
    train_step: tf.Variable, train_steps_per_policy_update: int = 1
) -> Callable[[tuple[Any, Any], tf_agent.LossInfo], None]:
    """Returns a function that summarizes the age of the policies behind a batch.

    Give it to a `Learner` as `after_train_strategy_step_fn`. The priorities of the
    items must be the train steps of the policies that collected them. It writes
    `staleness/max_train_step_delta_in_batch`,
    `staleness/max_policy_update_delta_in_batch` and
    `staleness/num_stale_obserations_in_batch` (TF-Agents' spelling).

    Args:
      train_step: The learner's train step.
      train_steps_per_policy_update: The number of train steps between updates of the
        collecting policies.
    """

    def after_train_step(
        experience_and_info: tuple[Any, Any], loss_info: tf_agent.LossInfo
    ) -> None:
        del loss_info
        _, sample_info = experience_and_info
        collected_at = tf.cast(sample_info.priority, tf.int64)
        period = tf.constant(train_steps_per_policy_update, tf.int64)
        newest = tf.cast(train_step, tf.int64) // period * period
        age = newest - collected_at
        summaries.summarize_scalar_dict(
            {
                "max_train_step_delta_in_batch": tf.reduce_max(age),
                "max_policy_update_delta_in_batch": tf.reduce_max(age) // period,
                "num_stale_obserations_in_batch": tf.math.count_nonzero(age > 0),
            },
            train_step,
            name_scope="staleness/",
        )

    return after_train_step


def wait_for_policy(
    policy_dir: str | os.PathLike,
    sleep_time_secs: float = _SLEEP_TIME_SECS,
    num_retries: int | None = _NUM_RETRIES,
    **saved_model_policy_args: Any,
) -> py_tf_eager_policy.SavedModelPyTFEagerPolicy:
    """Waits until a `PolicySaver` has written a policy, and loads it.

    Args:
      policy_dir: The policy's directory.
      sleep_time_secs: See `wait_for_predicate`.
      num_retries: See `wait_for_predicate`.
      **saved_model_policy_args: Further arguments of `SavedModelPyTFEagerPolicy`.

    Raises:
      TimeoutError: There is no policy after `num_retries` attempts.
    """
    policy_dir = os.fspath(policy_dir)
    # The saver writes this file last.
    wait_for_file(
        os.path.join(policy_dir, saved_model.POLICY_SPECS_PBTXT),
        sleep_time_secs,
        num_retries,
    )
    return py_tf_eager_policy.SavedModelPyTFEagerPolicy(
        policy_dir, **saved_model_policy_args
    )


def wait_for_file(
    file_path: str,
    sleep_time_secs: float = _SLEEP_TIME_SECS,
    num_retries: int | None = _NUM_RETRIES,
) -> str:
    """Waits until there is a file that is not empty, and returns its path.

    Args:
      file_path: The file's path.
      sleep_time_secs: See `wait_for_predicate`.
      num_retries: See `wait_for_predicate`.

    Raises:
      TimeoutError: There is no such file after `num_retries` attempts.
    """

    def is_missing() -> bool:
        try:
            return tf.io.gfile.stat(file_path).length <= 0
        except tf.errors.NotFoundError:
            return True

    _wait(is_missing, f"{file_path} to be written", sleep_time_secs, num_retries)
    return file_path


def wait_for_predicate(
    wait_predicate_fn: Callable[[], bool],
    sleep_time_secs: float = _SLEEP_TIME_SECS,
    num_retries: int | None = _NUM_RETRIES,
) -> None:
    """Waits while `wait_predicate_fn()` is true.

    Args:
      wait_predicate_fn: Returns whether to wait further.
      sleep_time_secs: The number of seconds between two attempts.
      num_retries: The number of attempts after which to give up; None for no limit.

    Raises:
      TimeoutError: The function returned true at every attempt.
    """
    _wait(
        wait_predicate_fn, "wait_predicate_fn to be false", sleep_time_secs, num_retries
    )


def _wait(
    goes_on: Callable[[], bool],
    what: str,
    sleep_time_secs: float,
    num_retries: int | None,
) -> None:
    looks = 0
    while num_retries is None or looks < num_retries:
        if not goes_on():
            return
        _logger.info("Waiting for %s.", what)
        looks += 1
        if looks != num_retries:
            time.sleep(sleep_time_secs)
    raise TimeoutError(
        f"num_retries: looked {num_retries} times, {sleep_time_secs} seconds apart, "
        f"and waited in vain for {what}; see whether the process that does it runs, or "
        "raise num_retries."
    )
