"""Plays a saved policy: prints its returns and films it.

    tfrl play logs/dqn_CartPole-v1_0 --num_episodes=20
    tfrl play --policy=some/saved_policy --env=CartPole-v1 --trust

The policy is built by the settings in FOLDER/config.json, and has the weights in
FOLDER/policy. Without settings, its SavedModel runs, which may do anything: give
--trust if you trust it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from absl import flags

from tfrl import eval as evaluation
from tfrl import train
from tfrl.command import parsing, saved_policy
from tfrl.system import files, log, quiet
from tfrl.utils import mp4


def main(words: Sequence[str]) -> None:
    """Plays by the flags in some words."""
    given = saved_policy.define_flags()
    parsing.add(given, "num_episodes", 20, "Episodes to play.")
    parsing.add(given, "max_steps", 100_000, "Largest number of steps of an episode.")
    text = "Where to write the video; by default next to the policy."
    parsing.add(given, "video", None, text)
    parsing.add(given, "video_episodes", 1, "Episodes to film.")
    parsing.add(given, "overwrite", False, "Replace an older film at --video.")
    saved_policy.start(given, words, lambda folder: _run(given, folder), __doc__)


def _run(given: flags.FlagValues, folder: str | None) -> None:
    """Evaluates the policy, prints its returns and films it."""
    saved = saved_policy.find(given, folder)
    if given.video:
        is_own = files.bears(given.video, mp4.MARK.encode())
        files.check_replaceable(
            "--video", given.video, is_own=is_own, overwrite=given.overwrite
        )
    quiet.quieten_tensorflow()
    num_episodes = given.num_episodes
    # All episodes run side by side.
    environment = saved.make_environment(num_episodes)
    policy = saved.load(environment)
    evaluator = evaluation.Evaluator(environment, policy, num_episodes, saved.seed)
    result = evaluator.run(max_steps=given.max_steps)
    for episode, value in enumerate(result.returns, start=1):
        print(f"episode {episode}: return {value:.1f}")
    log.say(
        f"{num_episodes} episodes of {saved.env}: mean return {result.mean:.1f}, "
        f"standard deviation {result.std:.1f}, from {result.returns.min():.1f} to "
        f"{result.returns.max():.1f}"
    )
    video = saved.path.parent / "play.mp4" if given.video is None else given.video
    if video:
        with contextlib.closing(saved.make_environment(1)) as shown:
            train.runs.video.record_video(
                shown,
                policy,
                video,
                num_episodes=given.video_episodes,
                seed=saved.seed,
            )
        log.say(f"Video: {video}")
