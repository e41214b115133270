"""Actions of a `Learner` at intervals: saving policies, logging the speed.

A learner calls its triggers after each `run` with the current train step.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.metrics import py_metric
from tfrl.policies import (
    async_policy_saver,
    greedy_policy,
    policy_saver,
    tf_policy,
)
from tfrl.policies.saving import saved_model
from tfrl.train import interval_trigger, learner, step_per_second_tracker

if TYPE_CHECKING:
    from tfrl import replay_service

_logger = logging.getLogger(__name__)

# The usual name of the number of environment steps among `metadata_metrics`.
ENV_STEP_METADATA_KEY = "env_step"


class PolicySavedModelTrigger(interval_trigger.IntervalTrigger):
    """Saves an agent's policies once, and then their weights at intervals.

    The constructor writes the SavedModels `greedy_policy`, `collect_policy` and
    `policy`, unless complete ones exist. `policy` is the agent's policy without a
    `GreedyPolicy` around it. Each call of the trigger writes the weights of `policy` to
    `checkpoints/policy_checkpoint_NUMBER`, where the number is the train step with ten
    digits. `policy_loader.load` and `update_from_checkpoint` read these weights into
    any of the three policies.
    """

    def __init__(
        self,
        saved_model_dir: str | os.PathLike,
        agent: tf_agent.TFAgent,
        train_step: tf.Variable,
        interval: int,
        async_saving: bool = False,
        metadata_metrics: Mapping[str, py_metric.PyMetric] | None = None,
        start: int = 0,
        extra_concrete_functions: Sequence[tuple[str, Any]] | None = None,
        batch_size: int | None = None,
        use_nest_path_signatures: bool = True,
        save_greedy_policy: bool = True,
        save_collect_policy: bool = True,
        input_fn_and_spec: policy_saver.InputFnAndSpecType | None = None,
    ) -> None:
        """Writes the SavedModels that are not there yet.

        Args:
          saved_model_dir: The directory of all policies and checkpoints.
          agent: The agent.
          train_step: The train step, saved with the policies.
          interval: See `IntervalTrigger`.
          async_saving: Whether a thread saves the weights, so that training does not
            wait; they may then come from different train steps.
          metadata_metrics: Metrics by name, whose scalar results are saved with the
            weights.
          start: See `IntervalTrigger`.
          extra_concrete_functions: Names and functions to save with each policy; see
            `PolicySaver.register_concrete_function`.
          batch_size: See `PolicySaver`.
          use_nest_path_signatures: See `PolicySaver`.
          save_greedy_policy: Whether to save a greedy policy; False for distributions
            without a mode.
          save_collect_policy: Whether to save the collect policy.
          input_fn_and_spec: See `PolicySaver`.

        Raises:
          NotImplementedError: `async_saving` with `metadata_metrics`.
        """
        if async_saving and metadata_metrics:
            raise NotImplementedError(
                "metadata_metrics: got some with async_saving=True, expected None, "
                "since the thread would save them at a later train step; set "
                "async_saving=False."
            )
        self._agent = agent
        self._train_step = train_step
        self._metrics = dict(metadata_metrics or {})
        self._metadata = {
            name: _variable_like(metric.result())
            for name, metric in self._metrics.items()
        }
        self._directory = os.path.join(saved_model_dir, learner.POLICY_CHECKPOINT_DIR)

        def make_saver(policy: tf_policy.TFPolicy) -> policy_saver.PolicySaver:
            saver = policy_saver.PolicySaver(
                policy,
                batch_size=batch_size,
                use_nest_path_signatures=use_nest_path_signatures,
                train_step=train_step,
                input_fn_and_spec=input_fn_and_spec,
                metadata=self._metadata,
            )
            for name, function in extra_concrete_functions or ():
                saver.register_concrete_function(name, function)
            return saver

        raw, greedy = agent.policy, agent.policy
        if isinstance(raw, greedy_policy.GreedyPolicy):
            raw = raw.wrapped_policy
        elif save_greedy_policy:
            greedy = greedy_policy.GreedyPolicy(raw)
        raw_saver = make_saver(raw)
        savers = {learner.RAW_POLICY_SAVED_MODEL_DIR: raw_saver}
        if save_collect_policy:
            savers[learner.COLLECT_POLICY_SAVED_MODEL_DIR] = make_saver(
                agent.collect_policy
            )
        if save_greedy_policy:
            savers[learner.GREEDY_POLICY_SAVED_MODEL_DIR] = make_saver(greedy)
        for name, saver in savers.items():
            path = os.path.join(saved_model_dir, name)
            if saved_model.find_fault(path) is not None:
                saver.save(path)
        self._saver: policy_saver.PolicySaver | async_policy_saver.AsyncPolicySaver = (
            async_policy_saver.AsyncPolicySaver(raw_saver)
            if async_saving
            else raw_saver
        )
        super().__init__(interval, self._save, start)

    def _save(self) -> None:
        self._agent.post_process_policy()
        for name, metric in self._metrics.items():
            self._metadata[name].assign(metric.result())
        number = int(self._train_step.numpy())
        self._saver.save_checkpoint(
            os.path.join(self._directory, f"policy_checkpoint_{number:010d}")
        )


class StepPerSecondLogTrigger(interval_trigger.IntervalTrigger):
    """Logs the train steps per second since the last trigger.

    The summary is `RunTime/train_steps_per_sec`.
    """

    def __init__(
        self, train_step: tf.Variable, interval: int, log_to_terminal: bool = True
    ) -> None:
        """Starts to measure.

        Args:
          train_step: The train step.
          interval: See `IntervalTrigger`.
          log_to_terminal: Whether to log a line, too, at level INFO.
        """
        self._train_step = train_step
        self._log_to_terminal = log_to_terminal
        self._tracker = step_per_second_tracker.StepPerSecondTracker(train_step)
        super().__init__(interval, self._log)

    def set_start(self, start: int) -> None:
        """Counts and measures from `start`, the train step of a resumed run."""
        super().set_start(start)
        self._tracker.restart()

    def _log(self) -> None:
        rate = self._tracker.steps_per_second()
        self._tracker.restart()
        step = int(self._train_step.numpy())
        if self._log_to_terminal:
            _logger.info("Step: %d, %.3f steps/sec", step, rate)
        with tf.summary.record_if(True):
            # TensorFlow keeps each Python number that becomes a tensor, but not NumPy's
            # numbers.
            tf.summary.scalar(
                "RunTime/train_steps_per_sec", np.float32(rate), np.int64(step)
            )


class ReverbCheckpointTrigger(interval_trigger.IntervalTrigger):
    """Makes a replay server write a checkpoint of its tables."""

    def __init__(
        self,
        train_step: tf.Variable,
        interval: int,
        reverb_client: replay_service.Client,
    ) -> None:
        """Creates the trigger.

        Args:
          train_step: The train step.
          interval: See `IntervalTrigger`.
          reverb_client: A client of the server.
        """
        del train_step  # An argument of TF-Agents; the learner passes the value.
        self._client = reverb_client
        super().__init__(interval, self._save)

    def _save(self) -> None:
        _logger.info("Replay checkpoint: %s", self._client.checkpoint())


def _variable_like(result: Any) -> tf.Variable:
    value = tf.convert_to_tensor(result)
    return tf.Variable(tf.zeros_like(value), trainable=False)
