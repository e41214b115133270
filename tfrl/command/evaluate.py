"""Measures the policy of a run: the returns and lengths of new episodes.

    tfrl evaluate logs/sac_Pendulum-v1_0
    tfrl evaluate logs/sac_Pendulum-v1_0 --num_episodes=100 --json
    tfrl evaluate logs/ppo_CartPole-v1_0 --sampled

It is the best policy of the run, a SavedModel in FOLDER/policy, whose actions are
greedy. With --sampled it is the last one, which samples its actions as it did when it
collected.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from absl import flags

from tfrl import eval as evaluation
from tfrl.algorithms import learning, worlds
from tfrl.command import parsing, saved_policy
from tfrl.system import quiet


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
    path, name, seed, own = saved_policy.find(given, folder)
    if given.sampled and folder is None:
        raise ValueError(
            "--sampled: expected the folder of a run, since a saved policy is greedy, "
            "got none; give one."
        )
    quiet.quieten_tensorflow()
    environment = worlds.make_environment(name, given.num_episodes, seed, **own)
    if given.sampled and folder is not None:
        policy = learning.load(folder, name).agent.collect_policy
    else:
        policy = saved_policy.load(path)
    evaluator = evaluation.Evaluator(environment, policy, given.num_episodes, seed)
    result = evaluator.run(max_steps=given.max_steps)
    if given.json:
        print(
            json.dumps(
                {
                    "environment": name,
                    "episodes": given.num_episodes,
                    "seed": seed,
                    "mean": result.mean,
                    "std": result.std,
                    "median": result.median,
                    "returns": result.returns.tolist(),
                    "lengths": result.lengths.tolist(),
                }
            )
        )
        return
    print(
        f"{given.num_episodes} episodes of {name}: mean return {result.mean:.1f}, "
        f"standard deviation {result.std:.1f}, median {result.median:.1f}, from "
        f"{result.returns.min():.1f} to {result.returns.max():.1f}; mean length "
        f"{result.lengths.mean():.0f}"
    )
