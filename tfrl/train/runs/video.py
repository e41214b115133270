"""Records videos of a policy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from tfrl.environments import agents_py_environment, tf_environment
from tfrl.policies.saving import saved_model
from tfrl.utils import mp4

if TYPE_CHECKING:
    from tfrl.typing import types


def record_video(
    environment: tf_environment.TFEnvironment,
    policy: types.TFPolicy,
    path: str | os.PathLike,
    num_episodes: int = 1,
    fps: int = 50,
    max_frames: int = 3000,
    seed: int = 0,
) -> list[float]:
    """Records whole episodes and writes them as an MP4.

    Args:
      environment: An environment of batch size 1, or of the agents of one environment,
        that renders RGB frames `[B, height, width, 3]`.
      policy: A `TFPolicy`, or a loaded saved policy: anything with `action(time_step,
        policy_state, seed)` and `get_initial_state(batch_size)`.
      path: The file to write.
      num_episodes: The number of episodes to record.
      fps: Frames per second.
      max_frames: The maximum number of frames; a longer video is truncated.
      seed: Seed for a policy that draws random numbers.

    Returns:
      The return of each episode, summed over its recorded steps and all agents.

    Raises:
      ValueError: The environment's batch size is not 1, or it cannot be rendered, or
        a loaded policy is for other observations.
    """
    agents = agents_py_environment.find(environment)
    is_one = agents is not None and len(agents.envs) == 1
    if environment.batch_size != 1 and not is_one:
        raise ValueError(
            "environment: expected batch size 1 to record, got "
            f"{environment.batch_size}; load a single one with suite_gym.load."
        )
    policy = saved_model.for_environment(policy, environment)
    returns: list[float] = []
    frames = 0
    with mp4.writer(path, fps) as add_frame:
        for _ in range(num_episodes):
            time_step = environment.reset()
            state = policy.get_initial_state(environment.batch_size)
            add_frame(_render(environment))
            episode_return = 0.0
            while not np.all(time_step.is_last()) and frames < max_frames:
                step = policy.action(
                    time_step, state, tf.constant([seed, frames], tf.int64)
                )
                time_step, state = environment.step(step.action), step.state
                add_frame(_render(environment))
                episode_return += float(np.sum(time_step.reward))
                frames += 1
            returns.append(episode_return)
    return returns


def _render(environment: tf_environment.TFEnvironment) -> np.ndarray:
    frame = np.asarray(environment.render())
    if frame.ndim != 4 or frame.shape[-1] != 3:
        raise ValueError(
            "environment: expected render() to give RGB frames [1, height, width, 3], "
            f"got shape {frame.shape}; load it with render_mode='rgb_array'."
        )
    return frame[0].astype(np.uint8)
