"""Trains a bandit's agent, and writes checkpoints, policies and metrics.

`train.OnPolicyLoop` trains many times faster, as one compiled program.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.bandits.replay_buffers import bandit_replay_buffer
from tfrl.drivers import dynamic_step_driver
from tfrl.environments import tf_environment
from tfrl.metrics import export_utils, tf_metrics
from tfrl.policies import policy_saver
from tfrl.savers import checkpoint_names, whole_checkpoints

_LOOPS_PER_POLICY = 100


def train(
    root_dir: str,
    agent: tf_agent.TFAgent,
    environment: tf_environment.TFEnvironment,
    training_loops: int,
    steps_per_loop: int,
    async_steps_per_loop: int | None = None,
    additional_metrics: Sequence[Any] = (),
    get_replay_buffer_fn: Callable[..., Any] | None = None,
    get_training_loop_fn: Callable[..., Any] | None = None,
    training_data_spec_transformation_fn: Callable[[Any], Any] | None = None,
    save_policy: bool = True,
    resume_training_loops: bool = False,
) -> None:
    """Plays rounds and trains the agent once on each, again and again.

    A checkpoint is written after each loop, and restored at the start. Metrics and
    losses are logged at level INFO, and metrics are written as summaries.

    Args:
      root_dir: The directory of checkpoints, policies and summaries.
      agent: The agent.
      environment: The bandit.
      training_loops: The number of loops.
      steps_per_loop: The steps of each member between two updates.
      async_steps_per_loop: The number of such stretches that are played in a loop
        before the agent trains on each of them; None for 1.
      additional_metrics: Metrics in addition to the number of episodes, their
        lengths and returns.
      get_replay_buffer_fn: Makes the buffer from a data spec, the batch size,
        `steps_per_loop` and `async_steps_per_loop`.
      get_training_loop_fn: Makes the function of a loop, which takes `train_step` and
        `metrics`, from the driver, the buffer, the agent, `steps_per_loop` and
        `async_steps_per_loop`.
      training_data_spec_transformation_fn: Maps frames, and their specs, to those that
        the buffer holds.
      save_policy: Whether the policy is written in each hundredth loop.
      resume_training_loops: Whether `training_loops` counts the loops before the
        checkpoint, too.

    Raises:
      ValueError: `resume_training_loops`, and the checkpoint is of other sizes.
    """
    stretches = async_steps_per_loop or 1
    transform = training_data_spec_transformation_fn or (lambda data: data)
    buffer = (get_replay_buffer_fn or _make_replay_buffer)(
        transform(agent.policy.trajectory_spec),
        environment.batch_size,
        steps_per_loop,
        stretches,
    )
    rounds = tf_metrics.EnvironmentSteps()
    metrics = [*_default_metrics(environment), *additional_metrics]
    driver = dynamic_step_driver.DynamicStepDriver(
        env=environment,
        policy=agent.collect_policy,
        observers=[lambda data: buffer.add_batch(transform(data)), rounds, *metrics],
        num_steps=steps_per_loop * environment.batch_size,
    )
    loop = (get_training_loop_fn or _make_training_loop)(
        driver, buffer, agent, steps_per_loop, stretches
    )
    checkpointer = whole_checkpoints.Checkpointer(
        root_dir,
        5,
        agent=agent,
        step=rounds,
        **{metric.name: metric for metric in metrics},
    )
    restored = checkpointer.restored_path
    number = checkpoint_names.number_of(restored) if restored else 0
    first = 0
    if resume_training_loops:
        first, rest = divmod(
            int(rounds.result()), steps_per_loop * environment.batch_size * stretches
        )
        if rest:
            raise ValueError(
                f"root_dir: got a checkpoint after {int(rounds.result())} rounds, "
                "expected a multiple of steps_per_loop * batch_size * "
                "async_steps_per_loop; take the sizes of the run before, or "
                "resume_training_loops=False."
            )
    saver = policy_saver.PolicySaver(agent.policy, train_step=agent.train_step_counter)
    with tf.summary.create_file_writer(root_dir).as_default():
        for i in range(first, training_loops):
            loop(train_step=i, metrics=metrics)
            number += 1
            checkpointer.save(number)
            if save_policy and i % _LOOPS_PER_POLICY == 0:
                saver.save(os.path.join(root_dir, f"policy_{int(rounds.result())}"))


def _default_metrics(environment: tf_environment.TFEnvironment) -> list[Any]:
    size, spec = environment.batch_size, environment.reward_spec()
    metrics: list[Any] = [
        tf_metrics.NumberOfEpisodes(),
        tf_metrics.AverageEpisodeLengthMetric(batch_size=size),
    ]
    if isinstance(spec, dict) or spec.shape.rank:
        metrics.append(
            tf_metrics.AverageReturnMultiMetric(reward_spec=spec, batch_size=size)
        )
    if not isinstance(spec, dict):
        metrics.append(tf_metrics.AverageReturnMetric(batch_size=size))
    return metrics


def _make_replay_buffer(
    data_spec: Any, batch_size: int, steps_per_loop: int, async_steps_per_loop: int
) -> Any:
    return bandit_replay_buffer.BanditReplayBuffer(
        data_spec, batch_size, max_length=steps_per_loop * async_steps_per_loop
    )


def _make_training_loop(
    driver: Any,
    buffer: Any,
    agent: tf_agent.TFAgent,
    steps_per_loop: int,
    async_steps_per_loop: int,
) -> Callable[..., None]:
    def training_loop(train_step: int, metrics: Sequence[Any]) -> None:
        first = train_step * async_steps_per_loop
        for step in range(first, first + async_steps_per_loop):
            driver.run()
            export_utils.export_metrics(step, metrics)
            for metric in metrics:
                metric.tf_summaries(train_step=step)
        frames = buffer.gather_all()
        for k in range(async_steps_per_loop):
            stretch = slice(k * steps_per_loop, (k + 1) * steps_per_loop)
            of_stretch = tf.nest.map_structure(lambda x, of=stretch: x[:, of], frames)
            loss_info = agent.train(of_stretch)
            export_utils.export_metrics(first + k, [], loss_info)
        buffer.clear()

    return training_loop
