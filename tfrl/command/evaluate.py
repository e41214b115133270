"""Measures the policy of a run: the returns and lengths of new episodes.

    tfrl evaluate logs/sac_Pendulum-v1_0
    tfrl evaluate logs/sac_Pendulum-v1_0 --num_episodes=100 --json
    tfrl evaluate logs/ppo_CartPole-v1_0 --sampled

It is the best policy of the run, whose actions are greedy: it is built by the settings
in FOLDER/config.json, and has the weights in FOLDER/policy. With --sampled it is the
last one, which samples its actions as it did when it collected.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from absl import flags

from tfrl import eval as evaluation
from tfrl.algorithms import learning
from tfrl.command import parsing, saved_policy
from tfrl.system import log, quiet


def main(words: Sequence[str]) -> None:
    """Evaluates by the flags in some words."""
    given = saved_policy.define_flags()
    parsing.add(given, "num_episodes", 20, "Episodes to play.")
    parsing.add(given, "max_steps", 100_000, "Largest number of steps of an episode.")
    parsing.add(given, "sampled", False, "Sample actions, as while collecting.")
    parsing.add(given, "json", False, "Print JSON.")
    saved_policy.start(given, words, lambda folder: _run(given, folder), __doc__)


def _run(given: flags.FlagValues, folder: str | None) -> None:
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
    evaluator = evaluation.Evaluator(
        environment, policy, given.num_episodes, saved.seed
    )
    result = evaluator.run(max_steps=given.max_steps)
    if given.json:
        print(
            json.dumps(
                {
                    "environment": saved.env,
                    "episodes": given.num_episodes,
                    "seed": saved.seed,
                    "mean": result.mean,
                    "std": result.std,
                    "median": result.median,
                    "returns": result.returns.tolist(),
                    "lengths": result.lengths.tolist(),
                }
            )
        )
        return
    log.say(
        f"{given.num_episodes} episodes of {saved.env}: mean return {result.mean:.1f}, "
        f"standard deviation {result.std:.1f}, median {result.median:.1f}, from "
        f"{result.returns.min():.1f} to {result.returns.max():.1f}; mean length "
        f"{result.lengths.mean():.0f}"
    )
