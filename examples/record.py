"""Records episodes of a saved policy, to train from with examples.train_offline.

    python -m examples.record --logdir=logs/sac_Pendulum-v1_0
    python -m examples.record --policy=FOLDER --env=Pendulum-v1 --num_episodes=250

The file is a TFRecord file in TF-Agents' format, with the spec of its frames beside it;
see tfrl.utils.example_encoding_dataset, and tfrl.datasets.load_recordings.
"""

from __future__ import annotations

from typing import Any

from absl import flags

from examples import cli, saved_policy
from tfrl import datasets, environments
from tfrl.system import quiet

_NUM_EPISODES = flags.DEFINE_integer(
    "num_episodes", 100, "Episodes to record.", lower_bound=1
)
_OUTPUT = flags.DEFINE_string(
    "output", "logs/recordings/episodes.tfrecord", "The file to write."
)


def main() -> None:
    """Records the episodes, and prints their returns."""
    path, name, seed, bins = saved_policy.find()
    quiet.quieten_tensorflow()
    policy = saved_policy.load(path)
    environment = cli.make_environment(name, 1, seed, bins)
    frames = record(environment, policy, _NUM_EPISODES.value, _OUTPUT.value, seed)
    returns = datasets.episode_returns(datasets.load_recordings(_OUTPUT.value))
    print(
        f"{_OUTPUT.value}: {frames:,} frames, {len(returns)} episodes of {name}, mean "
        f"return {returns.mean():.1f}, from {returns.min():.1f} to {returns.max():.1f}"
    )


def record(
    environment: environments.TFPyEnvironment,
    policy: Any,
    num_episodes: int,
    output: str,
    seed: int,
) -> int:
    """Writes the frames of whole episodes, each with its boundary.

    Returns the number of frames.
    """
    # Not at the top: --help does not wait for TensorFlow.
    import tensorflow as tf

    from tfrl.trajectories import policy_step, trajectory
    from tfrl.utils import example_encoding_dataset

    time_step_spec = environment.time_step_spec()
    action_spec = policy_step.PolicyStep(environment.action_spec(), (), ())
    recorder = example_encoding_dataset.TFRecordObserver(
        output, trajectory.from_transition(time_step_spec, action_spec, time_step_spec)
    )
    time_step, state = environment.reset(), policy.get_initial_state(1)
    boundaries = frames = 0
    while boundaries < num_episodes:
        step = policy.action(time_step, state, tf.constant([seed, frames], tf.int64))
        reached = environment.step(step.action)
        recorder(trajectory.from_transition(time_step, step._replace(info=()), reached))
        boundaries += int(time_step.is_last()[0])
        frames += 1
        time_step, state = reached, step.state
    recorder.close()
    return frames


if __name__ == "__main__":
    cli.start(main)
