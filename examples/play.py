"""Plays a saved policy: prints its returns and films it.

    python -m examples.play --logdir=logs/dqn_CartPole-v1_0 --num_episodes=20
    python -m examples.play --policy=some/saved_policy --env=CartPole-v1

The policy is a SavedModel, which training writes to LOGDIR/policy; it needs no agent.
"""

from __future__ import annotations

from absl import flags

from examples import cli, saved_policy
from tfrl import eval as evaluation
from tfrl import train
from tfrl.system import quiet

_NUM_EPISODES = flags.DEFINE_integer(
    "num_episodes", 20, "Episodes to play.", lower_bound=1
)
_MAX_STEPS = flags.DEFINE_integer(
    "max_steps", 100_000, "Largest number of steps of an episode.", lower_bound=1
)
_VIDEO = flags.DEFINE_string(
    "video",
    None,
    "Where to write the video; by default beside the policy.",
)
_VIDEO_EPISODES = flags.DEFINE_integer(
    "video_episodes", 1, "Episodes to film.", lower_bound=1
)


def main() -> None:
    """Evaluates the policy, prints its returns and films it."""
    path, name, seed, own = saved_policy.find()
    quiet.quieten_tensorflow()
    policy = saved_policy.load(path)
    num_episodes = _NUM_EPISODES.value
    # All episodes run side by side.
    environment = cli.make_environment(name, num_episodes, seed, **own)
    evaluator = evaluation.Evaluator(environment, policy, num_episodes, seed)
    result = evaluator.run(max_steps=_MAX_STEPS.value)
    for episode, value in enumerate(result.returns, start=1):
        print(f"episode {episode}: return {value:.1f}")
    print(
        f"{num_episodes} episodes of {name}: mean return {result.mean:.1f}, standard "
        f"deviation {result.std:.1f}, from {result.returns.min():.1f} to "
        f"{result.returns.max():.1f}"
    )
    video = path.parent / "play.mp4" if _VIDEO.value is None else _VIDEO.value
    if video:
        train.runs.video.record_video(
            cli.make_environment(name, 1, seed, **own),
            policy,
            video,
            num_episodes=_VIDEO_EPISODES.value,
            seed=seed,
        )
        print(f"Video: {video}")


if __name__ == "__main__":
    cli.start(main)
