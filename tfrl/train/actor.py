"""Collects experience in, or evaluates a policy on, an environment.

```python
collect = actor.Actor(
    environment,
    policies.PyTFEagerPolicy(agent.collect_policy, use_tf_function=True),
    train_step,
    steps_per_run=1,
    observers=[replay_observer],
    metrics=actor.collect_metrics(10),
    summary_dir="run/train",
)
collect.run()
```
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from tfrl.drivers import driver, py_driver, tf_driver
from tfrl.drivers import observers as observers_lib
from tfrl.environments import py_environment, tf_environment
from tfrl.metrics import export_utils, py_metric, py_metrics
from tfrl.policies import tf_policy
from tfrl.typing import types
from tfrl.utils import summaries


class Actor:
    """Runs a policy in an environment, some steps or episodes at a time.

    A run continues where the last one ended. The metrics are observers, whose results
    are written as summaries and logged.
    """

    def __init__(
        self,
        env: types.PyEnv | types.TFEnv,
        policy: types.PyPolicy | types.TFPolicy,
        train_step: tf.Variable,
        steps_per_run: int | None = None,
        episodes_per_run: int | None = None,
        observers: Sequence[driver.Observer] | None = None,
        transition_observers: Sequence[driver.Observer] | None = None,
        info_observers: Sequence[driver.Observer] | None = None,
        metrics: Sequence[py_metric.MetricType] | None = None,
        reference_metrics: Sequence[py_metric.MetricType] | None = None,
        image_metrics: Sequence[py_metric.MetricType] | None = None,
        summary_dir: str | os.PathLike | None = None,
        summary_interval: int = 1000,
        end_episode_on_boundary: bool = True,
        name: str = "",
    ) -> None:
        """Resets the environment.

        Args:
          env: An environment, on arrays or on tensors.
          policy: A policy of the same kind.
          train_step: The step of the summaries, an int64 variable.
          steps_per_run: The number of environment steps in a run.
          episodes_per_run: The number of episodes in a run; a run ends at the first
            limit that it reaches.
          observers: Called with the `Trajectory` of each step, in this order and before
            the metrics. An observer that is given twice is called once.
          transition_observers: Called with `(time_step, action_step, next_time_step)`.
          info_observers: Called with the environment's `get_info()`; only for a Python
            environment.
          metrics: Metrics of scalars; a Python metric works with both kinds of
            environments.
          reference_metrics: Metrics whose results are the steps of further summaries.
            They are only updated if they are among `metrics`, too.
          image_metrics: Metrics of images `[N, H, W, C]`.
          summary_dir: The directory of the summaries; None writes no summaries.
          summary_interval: The number of train steps between summaries; 0 writes no
            summaries.
          end_episode_on_boundary: See `PyDriver`; False only for a Python environment.
          name: A part of the summaries' tags.

        Raises:
          TypeError: `env` is not an environment, or `policy` is for the other kind of
            environment.
          ValueError: A run has no limit, or a TensorFlow environment does not support
            one of the arguments.
        """
        self._env: Any = env
        self._policy: Any = policy
        self._time_step: Any = None
        self._policy_state: Any = ()
        self._train_step = train_step
        self._metrics = list(metrics or ())
        self._reference_metrics = list(reference_metrics or ())
        self._image_metrics = list(image_metrics or ())
        self._summary_writer = (
            tf.summary.create_file_writer(os.fspath(summary_dir), flush_millis=10_000)
            if summary_dir
            else tf.summary.create_noop_writer()
        )
        self._summary_interval = summary_interval if summary_dir else 0
        # The first run writes summaries, too.
        self._last_summary = -self._summary_interval
        self._name = name
        shown = _without_repeats(
            [*(observers or ()), *self._metrics, *self._image_metrics]
        )
        if isinstance(env, py_environment.PyEnvironment):
            self._driver: driver.Driver = py_driver.PyDriver(
                env,
                _checked(policy, is_tf=False),
                shown,
                transition_observers,
                info_observers,
                max_steps=steps_per_run,
                max_episodes=episodes_per_run,
                end_episode_on_boundary=end_episode_on_boundary,
            )
        elif isinstance(env, tf_environment.TFEnvironment):
            _check_arguments_with_tensors(info_observers, end_episode_on_boundary)
            self._driver = tf_driver.TFDriver(
                env,
                _checked(policy, is_tf=True),
                [_for_tensors(observer) for observer in shown],
                transition_observers,
                max_steps=steps_per_run,
                max_episodes=episodes_per_run,
            )
        else:
            raise TypeError(
                f"env: got a {type(env).__name__}, expected a PyEnvironment or a "
                "TFEnvironment; load one with tfrl.environments.suite_gym.load."
            )
        self.reset()

    @property
    def metrics(self) -> list[py_metric.MetricType]:
        """The metrics of scalars."""
        return self._metrics

    @property
    def image_metrics(self) -> list[py_metric.MetricType]:
        """The metrics of images."""
        return self._image_metrics

    @property
    def summary_writer(self) -> tf.summary.SummaryWriter:
        """The writer of the summaries."""
        return self._summary_writer

    @property
    def train_step(self) -> tf.Variable:
        """The step of the summaries."""
        return self._train_step

    @property
    def policy(self) -> types.PyPolicy:
        """The policy that acts."""
        return self._policy

    def run(self) -> None:
        """Runs the policy from where the last run ended; writes summaries if due."""
        self._time_step, self._policy_state = self._driver.run(
            self._time_step, self._policy_state
        )
        step = int(self._train_step.numpy())
        is_due = step - self._last_summary >= self._summary_interval
        if self._summary_interval > 0 and is_due:
            self.write_metric_summaries()
            self._last_summary = step

    def run_and_log(self) -> None:
        """Calls `run` and then `log_metrics`."""
        self.run()
        self.log_metrics()

    def write_metric_summaries(self) -> None:
        """Writes the metrics' results.

        The tags are `Metrics/ACTOR/METRIC` at the train step, and
        `ACTOR/Metrics/METRIC/REFERENCE` at the results of the reference metrics. An
        actor without a name leaves out `ACTOR/`.
        """
        step = summaries.as_step(self._train_step)
        with self._summary_writer.as_default(), tf.summary.record_if(True):
            for metric in self._metrics:
                result = metric.result()
                tf.summary.scalar(self._tag(metric), result, step=step)
                for reference in self._reference_metrics:
                    tag = f"Metrics/{metric.name}/{reference.name}"
                    tf.summary.scalar(
                        os.path.join(self._name, tag),
                        result,
                        step=summaries.as_step(reference.result()),
                    )
            for metric in self._image_metrics:
                tf.summary.image(self._tag(metric), metric.result(), step=step)

    def log_metrics(self) -> None:
        """Logs the metrics' results at level INFO."""
        export_utils.log_metrics(self._metrics, self._name)

    def reset(self) -> None:
        """Resets the environment and the policy's state, but not the metrics."""
        self._time_step = self._env.reset()
        self._policy_state = self._policy.get_initial_state(self._env.batch_size or 1)

    def _tag(self, metric: py_metric.MetricType) -> str:
        return os.path.join("Metrics", self._name, metric.name)


def collect_metrics(buffer_size: int) -> list[py_metric.PyMetric]:
    """Returns the usual metrics of collection.

    They count episodes and steps, and average the returns and lengths of the last
    `buffer_size` episodes.
    """
    return [
        py_metrics.NumberOfEpisodes(),
        py_metrics.EnvironmentSteps(),
        *eval_metrics(buffer_size),
    ]


def eval_metrics(buffer_size: int) -> list[py_metric.PyMetric]:
    """Returns the mean return and length of the last `buffer_size` episodes."""
    return [
        py_metrics.AverageReturnMetric(buffer_size=buffer_size),
        py_metrics.AverageEpisodeLengthMetric(buffer_size=buffer_size),
    ]


def _without_repeats(observers: Iterable[Any]) -> list[Any]:
    """Returns each object once, in order; bound methods compare by object and name."""
    kept: list[Any] = []
    for observer in observers:
        if not any(observer is other or observer == other for other in kept):
            kept.append(observer)
    return kept


def _for_tensors(observer: Any) -> Any:
    """Returns an observer for a loop in TensorFlow, which may call a Python metric."""
    if isinstance(observer, py_metric.PyMetric):
        return observers_lib.HostObserver(observer)
    return observer


def _checked(policy: Any, *, is_tf: bool) -> Any:
    """Returns the policy; raises a TypeError if it does not fit the environment."""
    if isinstance(policy, tf_policy.TFPolicy) == is_tf:
        return policy
    if is_tf:
        raise TypeError(
            f"policy: got a {type(policy).__name__} with a TensorFlow environment, "
            "expected a TFPolicy; pass agent.collect_policy itself, or a TFPyPolicy."
        )
    raise TypeError(
        f"policy: got a {type(policy).__name__}, a policy on tensors, with a Python "
        "environment, expected a policy on arrays; wrap it in "
        "tfrl.policies.PyTFEagerPolicy(policy, use_tf_function=True)."
    )


def _check_arguments_with_tensors(
    info_observers: Any, end_episode_on_boundary: bool
) -> None:
    if info_observers:
        raise ValueError(
            f"info_observers: got {len(info_observers)} with a TensorFlow environment, "
            "which has no info, expected None; use a Python environment."
        )
    if not end_episode_on_boundary:
        raise ValueError(
            "end_episode_on_boundary: got False with a TensorFlow environment, whose "
            "driver counts an episode at its boundary, expected True; use a Python "
            "environment."
        )
