"""Plays a saved policy: prints its returns and films it.

    python -m examples.play --logdir=logs/dqn_CartPole-v1_0 --num_episodes=20
    python -m examples.play --policy=some/saved_policy --env=CartPole-v1

The policy is a SavedModel, which training writes to LOGDIR/policy; it needs no agent.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

from absl import flags

from examples import cli
from tfrl import eval as evaluation
from tfrl import train
from tfrl.system import quiet

_POLICY = flags.DEFINE_string(
    "policy", None, "Folder of the saved policy; LOGDIR/policy by default."
)
_NUM_EPISODES = flags.DEFINE_integer(
    "num_episodes", 20, "Episodes to play.", lower_bound=1
)
_MAX_STEPS = flags.DEFINE_integer(
    "max_steps", 100_000, "Largest number of steps of an episode.", lower_bound=1
)
_VIDEO = flags.DEFINE_string(
    "video", "play.mp4", "Where to write the video; empty for none."
)
_VIDEO_EPISODES = flags.DEFINE_integer(
    "video_episodes", 1, "Episodes to film.", lower_bound=1
)


def main() -> None:
    """Evaluates the policy, prints its returns and films it."""
    path, name, seed, bins = find_policy()
    quiet.quieten_tensorflow()
    policy = load(path)
    num_episodes = _NUM_EPISODES.value
    # All episodes run side by side.
    environment = cli.make_environment(name, num_episodes, seed, bins)
    evaluator = evaluation.Evaluator(environment, policy, num_episodes, seed)
    result = evaluator.run(max_steps=_MAX_STEPS.value)
    for episode, value in enumerate(result.returns, start=1):
        print(f"episode {episode}: return {value:.1f}")
    print(
        f"{num_episodes} episodes of {name}: mean return {result.mean:.1f}, standard "
        f"deviation {result.std:.1f}, from {result.returns.min():.1f} to "
        f"{result.returns.max():.1f}"
    )
    if _VIDEO.value:
        train.video.record_video(
            cli.make_environment(name, 1, seed, bins),
            policy,
            _VIDEO.value,
            num_episodes=_VIDEO_EPISODES.value,
            seed=seed,
        )
        print(f"Video: {_VIDEO.value}")


def load(path: pathlib.Path) -> Any:
    """Returns the saved policy; raises a ValueError if it is damaged."""
    import tensorflow as tf  # Not at the top: --help does not wait for it.

    try:
        return tf.saved_model.load(str(path))
    except (LookupError, OSError, tf.errors.OpError) as error:
        raise ValueError(
            f"--policy: {str(path)!r} cannot be loaded ({error}); restore it from a "
            "copy, or run the command that trained it again, which writes it again."
        ) from error


def find_policy() -> tuple[pathlib.Path, str, int, int]:
    """Returns the policy's folder, the environment's name, the seed, and the bins.

    The bins are those of `num_action_bins` in the run's configuration: the policy then
    returns the number of a bin.
    """
    if not _POLICY.value and not cli.LOGDIR.value:
        raise ValueError(
            "--logdir: expected the folder of a run, got none; give --logdir=FOLDER, "
            "or --policy=FOLDER and --env=NAME."
        )
    path = pathlib.Path(_POLICY.value or pathlib.Path(cli.LOGDIR.value, "policy"))
    if not (path / "saved_model.pb").exists():
        raise ValueError(
            f"--policy: expected a folder with a saved_model.pb, got {str(path)!r}; "
            "training writes one to LOGDIR/policy after its first evaluation."
        )
    # Without --logdir the run's folder is the one that the policy is in, if any.
    config = pathlib.Path(cli.LOGDIR.value or path.parent, "config.json")
    settings = json.loads(config.read_text()) if config.exists() else {}
    name = cli.ENV.value or settings.get("env")
    if name is None:
        raise ValueError(
            "--env: expected the environment's name, got none, and there is no "
            f"{config}; give --env=NAME."
        )
    seed = 123_456 if cli.SEED.value is None else cli.SEED.value
    return path, name, seed, settings.get("num_action_bins", 0)


if __name__ == "__main__":
    cli.start(main)
