"""Plays a saved policy: prints its returns and films it.

    tfrl play logs/dqn_CartPole-v1_0 --num_episodes=20
    tfrl play --policy=some/saved_policy --env=CartPole-v1 --trust

The policy is built by the settings in FOLDER/config.json, and has the weights in
FOLDER/policy. Without settings, its SavedModel runs, which may do anything: give
--trust if you trust it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any

from absl import flags

from tfrl import environments, train
from tfrl import eval as evaluation
from tfrl.algorithms import learning
from tfrl.command import parsing, saved_policy
from tfrl.system import files, log, quiet
from tfrl.utils import mp4


def main(words: Sequence[str]) -> None:
    """Plays by the flags in some words."""
    given = _define_flags()
    text = "Where to write the video; by default next to the policy."
    parsing.add(given, "video", None, text)
    parsing.add(given, "video_episodes", 1, "Episodes to film.")
    parsing.add(given, "overwrite", False, "Replace an older film at --video.")
    saved_policy.start(given, words, lambda folder: _run(given, folder), __doc__)


def _define_flags() -> flags.FlagValues:
    """Returns the flags that both commands have."""
    given = saved_policy.define_flags()
    parsing.add(given, "num_episodes", 20, "Episodes to play.")
    parsing.add(given, "max_steps", 100_000, "Largest number of steps of an episode.")
    return given


def _run(given: flags.FlagValues, folder: str | None) -> None:
    """Evaluates the policy, prints its returns and films it."""
    saved = saved_policy.find(given, folder)
    if given.video:
        is_own = files.bears(given.video, mp4.MARK.encode())
        files.check_replaceable(
            "--video", given.video, is_own=is_own, overwrite=given.overwrite
        )
    quiet.quieten_tensorflow()
    # All episodes run side by side.
    environment = saved.make_environment(given.num_episodes)
    policy = saved.load(environment)
    result = _play(saved, environment, policy, given)
    for episode, value in enumerate(result.returns, start=1):
        print(f"episode {episode}: return {value:.1f}")
    log.say(
        f"{given.num_episodes} episodes of {saved.env}: mean return {result.mean:.1f}, "
        f"standard deviation {result.std:.1f}, from {result.returns.min():.1f} to "
        f"{result.returns.max():.1f}"
    )
    video = saved.path.parent / "play.mp4" if given.video is None else given.video
    if video:
        with contextlib.closing(saved.make_environment(1)) as shown:
            try:
                train.runs.video.record_video(
                    shown,
                    policy,
                    video,
                    num_episodes=given.video_episodes,
                    seed=saved.seed,
                )
            except NotImplementedError as error:
                if given.video:  # Somebody waits for it.
                    raise
                log.say(f"No video: {error}")
            else:
                log.say(f"Video: {video}")


def evaluate(words: Sequence[str]) -> None:
    """Measures the policy of a run: the returns and lengths of new episodes.

        tfrl evaluate logs/sac_Pendulum-v1_0
        tfrl evaluate logs/sac_Pendulum-v1_0 --num_episodes=100 --json
        tfrl evaluate logs/ppo_CartPole-v1_0 --sampled

    It is the best policy of the run, whose actions are greedy: it is built by the
    settings in FOLDER/config.json, and has the weights in FOLDER/policy. With --sampled
    it is the last one, which samples its actions as it did when it collected.
    """
    given = _define_flags()
    parsing.add(given, "sampled", False, "Sample actions, as while collecting.")
    parsing.add(given, "json", False, "Print JSON.")
    saved_policy.start(
        given, words, lambda folder: _evaluate(given, folder), evaluate.__doc__
    )


def _evaluate(given: flags.FlagValues, folder: str | None) -> None:
    """Evaluates the policy, and prints its returns."""
    saved = saved_policy.find(given, folder)
    if given.sampled and folder is None:
        raise ValueError(
            "--sampled: expected the folder of a run, since a saved policy is greedy, "
            "got none; give one."
        )
    quiet.quieten_tensorflow()
    environment = saved.make_environment(given.num_episodes)
    if given.sampled and folder is not None:
        policy = learning.load(folder, saved.env).agent.collect_policy
    else:
        policy = saved.load(environment)
    result = _play(saved, environment, policy, given)
    if given.json:
        found = {
            "environment": saved.env,
            "episodes": given.num_episodes,
            "seed": saved.seed,
            "mean": result.mean,
            "std": result.std,
            "median": result.median,
            "returns": result.returns.tolist(),
            "lengths": result.lengths.tolist(),
        }
        print(json.dumps(found))
        return
    log.say(
        f"{given.num_episodes} episodes of {saved.env}: mean return {result.mean:.1f}, "
        f"standard deviation {result.std:.1f}, median {result.median:.1f}, from "
        f"{result.returns.min():.1f} to {result.returns.max():.1f}; mean length "
        f"{result.lengths.mean():.0f}"
    )


def _play(
    saved: saved_policy.Saved,
    environment: environments.TFEnvironment,
    policy: Any,
    given: flags.FlagValues,
) -> evaluation.EvaluationResult:
    """Plays the episodes for which the flags ask."""
    evaluator = evaluation.Evaluator(
        environment, policy, given.num_episodes, saved.seed
    )
    return evaluator.run(max_steps=given.max_steps)
