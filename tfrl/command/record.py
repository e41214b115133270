"""Records episodes of a saved policy, to train from with IQL, CQL and the like.

    tfrl record logs/sac_Pendulum-v1_0
    tfrl record --policy=FOLDER --env=Pendulum-v1 --num_episodes=250
    tfrl record logs/sac_Pendulum-v1_0 --replay

With --replay it records no new episodes: it copies the frames of the run's replay
buffer, those that its policies collected while they learned, from its last checkpoint.

It writes logs/recordings/ENVIRONMENT/RUN.tfrecord, where training looks for data, or
RUN_replay.tfrecord; --output names another file. A file that exists stays, unless
--overwrite is given: then it is replaced when the recording is complete.

The file is a TFRecord in TF-Agents' format, with the spec of its frames next to it;
see tfrl.utils.example_encoding_dataset, and tfrl.datasets.load_recordings.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any

from absl import flags

from tfrl import datasets, environments, replay_buffers
from tfrl.algorithms import recordings, registry, run_folders, worlds
from tfrl.command import parsing, saved_policy
from tfrl.system import quiet


def main(words: Sequence[str]) -> None:
    """Records by the flags in some words."""
    given = saved_policy.define_flags()
    parsing.add(given, "num_episodes", 100, "Episodes to record.")
    text = "The file to write, by default in logs/recordings."
    parsing.add(given, "output", None, text)
    parsing.add(given, "overwrite", False, "Replace the file if it exists.")
    text = "Copy the frames of the run's replay buffer instead."
    parsing.add(given, "replay", False, text)
    saved_policy.start(given, words, lambda folder: _run(given, folder), __doc__)


def _run(given: flags.FlagValues, folder: str | None) -> None:
    """Writes the file, and prints the returns of the whole episodes in it."""
    path, name, seed, own = saved_policy.find(given, folder)
    run = pathlib.Path(folder or path.parent)
    output = _output(given, run, name)
    quiet.quieten_tensorflow()
    environment = worlds.make_environment(name, 1, seed, **own)
    if given.replay:
        frames = copy_replay(environment, run, output)
    else:
        policy = saved_policy.load(path)
        frames = recordings.record(
            environment, policy, given.num_episodes, output, seed
        )
    returns = datasets.episode_returns(datasets.load_recordings(output))
    text = f"{output}: {frames:,} frames, {len(returns)} whole episodes of {name}"
    if len(returns):
        low, high = returns.min(), returns.max()
        text += f", mean return {returns.mean():.1f}, from {low:.1f} to {high:.1f}"
    print(text)


def _output(given: flags.FlagValues, run: pathlib.Path, environment: str) -> str:
    """Returns the file to write.

    Raises:
      ValueError: It exists, and is not to be replaced.
    """
    folder = recordings.in_folder_of(recordings.FOLDER, environment)
    name = f"{run.resolve().name}{'_replay' * given.replay}.tfrecord"
    output = given.output or f"{folder}/{name}"
    if not given.overwrite and os.path.exists(output):
        raise ValueError(
            f"--output: got {output!r}, where there is a file already, expected a new "
            "one; give --overwrite to replace it, or another --output."
        )
    return str(output)


def copy_replay(
    environment: environments.TFEnvironment, run: pathlib.Path, output: str
) -> int:
    """Writes the frames of the replay buffer in a run's last checkpoint.

    Returns the number of frames.
    """
    # Not at the top: --help does not wait for TensorFlow.
    import tensorflow as tf

    from tfrl.savers import whole_checkpoints

    settings = run_folders.read(run)
    if settings.get("num_envs") != 1 or "replay_capacity" not in settings:
        raise ValueError(
            f"--replay: got the run {str(run)!r}, expected one with a replay buffer of "
            "one environment, as `tfrl train sac` makes it with --num_envs=1."
        )
    algorithm: Any = registry.algorithm_of(settings, environment)
    spec = recordings.frame_spec(environment)
    replay_buffer = replay_buffers.TFUniformReplayBuffer(
        spec,
        batch_size=1,
        max_length=settings["replay_capacity"],
        row_format=algorithm.row_format(),
    )
    checkpoint = tf.train.Checkpoint(replay_buffer=replay_buffer)
    whole_checkpoints.restore_latest(checkpoint, run / "checkpoints")
    if not replay_buffer.num_frames():
        raise ValueError(
            f"--replay: the checkpoints of {str(run)!r} hold no frames of its replay "
            "buffer, expected some; a Run with checkpoint_replay_buffer=True saves it."
        )
    held = tf.nest.map_structure(lambda t: t.numpy()[0], replay_buffer.gather_all())
    with recordings.writing(output, spec, py_mode=True) as recorder:
        for i in range(len(held.step_type)):
            recorder(tf.nest.map_structure(lambda array, i=i: array[i], held))
    return len(held.step_type)
