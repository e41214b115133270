"""Computes metrics of a policy over some episodes, and logs or summarizes them.

With a batched environment these functions stop once `num_episodes` episodes have ended,
which favours short episodes; `tfrl.eval.Evaluator` is free of that bias.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.drivers import dynamic_episode_driver, py_driver
from tfrl.metrics.export_utils import log_metrics as log_metrics

if TYPE_CHECKING:
    from tfrl.metrics import py_metric, tf_metric
    from tfrl.typing import types


class MetricsGroup(tf.Module):
    """Several metrics as one object, to checkpoint or to read together."""

    def __init__(
        self,
        metrics: Sequence[py_metric.PyMetric | tf_metric.TFStepMetric],
        name: str | None = None,
    ) -> None:
        """Creates the group.

        Args:
          metrics: The metrics of the group.
          name: The name of the module.
        """
        super().__init__(name=name)
        self.metrics = metrics

    def results(self) -> collections.OrderedDict[str, Any]:
        """Returns each metric's result by its name."""
        return _results(self.metrics)


def compute(
    metrics: Sequence[py_metric.PyMetric],
    environment: types.PyEnv,
    policy: types.PyPolicy,
    num_episodes: int = 1,
) -> collections.OrderedDict[str, Any]:
    """Resets the metrics and the environment, runs episodes, and returns the results.

    Args:
      metrics: `PyMetric`s.
      environment: A `PyEnvironment`.
      policy: A `PyPolicy`, or a TFPolicy in a `PyTFEagerPolicy`.
      num_episodes: The number of episodes to run.

    Returns:
      Each metric's result by its name.
    """
    for metric in metrics:
        metric.reset()
    driver = py_driver.PyDriver(
        environment, policy, observers=metrics, max_episodes=num_episodes
    )
    policy_state = policy.get_initial_state(environment.batch_size)
    driver.run(environment.reset(), policy_state)
    return _results(metrics)


def compute_summaries(
    metrics: Sequence[py_metric.PyMetric],
    environment: types.PyEnv,
    policy: types.PyPolicy,
    num_episodes: int = 1,
    global_step: types.Int | None = None,
    tf_summaries: bool = True,
    log: bool = False,
    callback: Callable[[Any, Any], Any] | None = None,
) -> collections.OrderedDict[str, Any]:
    """Computes metrics as `compute` does, and logs or summarizes the results.

    Args:
      metrics: `PyMetric`s.
      environment: A `PyEnvironment`.
      policy: A `PyPolicy`, or a TFPolicy in a `PyTFEagerPolicy`.
      num_episodes: The number of episodes to run.
      global_step: The step of the summaries and of the log; summaries need one, given
        here or by `tf.summary.experimental.set_step`.
      tf_summaries: Whether to write summaries to the default writer.
      log: Whether to log the results.
      callback: A function to call with the results and `global_step`, or None.

    Returns:
      Each metric's result by its name.
    """
    results = compute(metrics, environment, policy, num_episodes)
    if tf_summaries:
        for metric in metrics:
            metric.tf_summaries(train_step=global_step)
    if log:
        log_metrics(metrics, prefix=f"Step = {global_step}")
    if callback is not None:
        callback(results, global_step)
    return results


def eager_compute(
    metrics: Sequence[tf_metric.TFStepMetric],
    environment: types.TFEnv,
    policy: types.TFPolicy,
    num_episodes: int = 1,
    train_step: types.Int | None = None,
    summary_writer: tf.summary.SummaryWriter | None = None,
    summary_prefix: str = "",
    use_function: bool = True,
) -> collections.OrderedDict[str, Any]:
    """Computes `TFStepMetric`s of a TF policy in a TF environment, like `compute`.

    Successive calls with the same objects trace the loop only once. The first
    `num_episodes` episodes that end count, so a batch of environments favours short
    episodes, as in TF-Agents; `Evaluator` does not.

    Args:
      metrics: `TFStepMetric`s.
      environment: A `TFEnvironment`.
      policy: A `TFPolicy`.
      num_episodes: The number of episodes to run.
      train_step: The step of the summaries; None writes no summaries.
      summary_writer: The writer of the summaries; None writes no summaries.
      summary_prefix: The first part of the summaries' tags.
      use_function: Whether to trace the loop; False steps eagerly.

    Returns:
      Each metric's result by its name.
    """
    for metric in metrics:
        metric.reset()
    _driver(environment, policy, tuple(metrics), use_function).run(
        num_episodes=num_episodes
    )
    results = _results(metrics)
    if train_step is not None and summary_writer is not None:
        with summary_writer.as_default():
            for metric in metrics:
                name = metric.name
                tag = f"{summary_prefix}/{name}" if summary_prefix else name
                metric.write_summaries(tag, train_step)
    return results


@functools.lru_cache(maxsize=1)
def _driver(
    environment: Any, policy: Any, metrics: tuple[Any, ...], use_function: bool
) -> dynamic_episode_driver.DynamicEpisodeDriver:
    """Returns a driver; keeps the last one, whose loop need not be traced again."""
    return dynamic_episode_driver.DynamicEpisodeDriver(
        environment, policy, observers=metrics, use_function=use_function
    )


def _results(metrics: Iterable[Any]) -> collections.OrderedDict[str, Any]:
    return collections.OrderedDict((m.name, m.result()) for m in metrics)
