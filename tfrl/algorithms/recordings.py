"""Records the episodes of a policy in a file, to learn from offline."""

from __future__ import annotations

import os
from typing import Any

from tfrl import environments
from tfrl.compilation import trace_counts


def frame_spec(environment: environments.TFEnvironment) -> Any:
    """Returns the spec of a frame, as a `Trajectory` without policy info."""
    from tfrl.trajectories import policy_step, trajectory

    time_step_spec = environment.time_step_spec()
    action_spec = policy_step.PolicyStep(environment.action_spec(), (), ())
    return trajectory.from_transition(time_step_spec, action_spec, time_step_spec)


def record(
    environment: environments.TFEnvironment,
    policy: Any,
    num_episodes: int,
    output: str | os.PathLike,
    seed: int,
) -> int:
    """Writes the frames of whole episodes, each with its boundary.

    Returns the number of frames.
    """
    # Not at the top: --help does not wait for TensorFlow.
    import tensorflow as tf
    import tqdm

    from tfrl.trajectories import trajectory
    from tfrl.utils import example_encoding_dataset

    recorder = example_encoding_dataset.TFRecordObserver(
        os.fspath(output), frame_spec(environment)
    )
    time_step, state = environment.reset(), policy.get_initial_state(1)
    boundaries = frames = 0
    # It shows a bar on a terminal alone.
    bar = tqdm.tqdm(total=num_episodes, unit=" episodes", disable=None, leave=False)
    action = tf.function(trace_counts.of_one_object(policy.action), autograph=False)
    while boundaries < num_episodes:
        step = action(time_step, state, tf.constant([seed, frames], tf.int64))
        reached = environment.step(step.action)
        recorder(trajectory.from_transition(time_step, step._replace(info=()), reached))
        if time_step.is_last()[0]:
            boundaries += 1
            bar.update()
        frames += 1
        time_step, state = reached, step.state
    bar.close()
    recorder.close()
    return frames
