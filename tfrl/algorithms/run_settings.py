"""The evaluations, logs, checkpoints and films of an algorithm's run."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfrl import agents, train
from tfrl import eval as eval_lib
from tfrl.algorithms import worlds
from tfrl.reports import report

if TYPE_CHECKING:
    from tfrl.algorithms.builder import Builder

# Of each environment in the evaluation of an untrained policy, whose episodes may be
# long; and in all evaluations, where no time limit ends the episodes.
_MOST_STEPS = 1000


def make_run(
    algorithm: Builder,
    directory: train.RunDirectory | None = None,
    *,
    callbacks: Sequence[train.Callback] = (),
    **options: Any,
) -> train.Run:
    """Returns the run that trains an algorithm up to its `length`.

    Args:
      algorithm: The algorithm, whose parts are made if they are not.
      directory: The folder of its outputs; None writes nothing.
      callbacks: The callbacks.
      **options: Arguments of `make`, and further ones of `train.Run`.
    """
    # Not at the top: it imports Gymnasium.
    from tfrl.environments import agents_py_environment

    loop = algorithm.loop
    options = {"view": algorithm.make_view(), **options}
    agents_environment = agents_py_environment.find(algorithm.environment)
    if agents_environment is not None:
        named = agents_environment.mean_returns
        own = {f"return/{x}": functools.partial(_get, named, x) for x in named()}
        options["metrics"] = {**own, **(options.get("metrics") or {})}
    environment: Any = algorithm.environment
    if algorithm.opponents is not None:
        own_callback = train.SelfPlay(
            environment,
            algorithm.agent.collect_policy,
            algorithm.log_interval,
            seed=algorithm.seed,
        )
        callbacks = [own_callback, *callbacks]
    return train.Run(
        loop,
        directory,
        **dataclasses.asdict(algorithm.length),
        callbacks=callbacks,
        rows=algorithm.rows,
        **make(algorithm, algorithm.agent, **options),
    )


def _get(find: Callable[[], Mapping[str, float]], name: str) -> float:
    """Returns an entry of what a function returns."""
    return find()[name]


def make(
    algorithm: Builder,
    agent: agents.TFAgent,
    *,
    evaluates: bool = True,
    films: bool = True,
    evaluates_untrained: bool = True,
    reports: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """Returns the arguments of `train.Run`, except for loop, directory and length.

    Args:
      algorithm: The algorithm, with its settings and environments.
      agent: The agent, which another process may have made.
      evaluates: Whether the policy is evaluated.
      films: Whether the best policy is filmed at the end.
      evaluates_untrained: Whether the policy is evaluated before the first iteration.
      reports: Whether to write report.html, and to show its findings.
      **options: Further arguments of `train.Run`.
    """
    world, name = algorithm.world, algorithm.world.name
    untrained = _MOST_STEPS if evaluates_untrained else 0
    evaluation = _evaluation(algorithm, agent, untrained) if evaluates else {}
    return {
        "limits": train.EvaluationLimits(None, untrained),
        **evaluation,
        "eval_interval": algorithm.eval_interval,
        "log_interval": algorithm.log_interval,
        "checkpoint_interval": algorithm.checkpoint_interval,
        "files": train.RunFiles(
            video_environment=world.make_film if films else None,
            title=f"{algorithm.title} on {name}, seed {algorithm.seed}",
            report=functools.partial(write_report, algorithm) if reports else None,
        ),
        **options,
    }


def _evaluation(
    algorithm: Builder, agent: agents.TFAgent, most_untrained_steps: int
) -> dict[str, Any]:
    """Returns the arguments of `train.Run` for evaluations."""
    from tfrl.eval import value_check  # Not at the top: it imports TensorFlow.

    world, episodes = algorithm.world, algorithm.num_eval_episodes
    # All episodes of an evaluation run side by side, from different starts.
    environment = world.make_evaluation(episodes, 0)
    evaluator = eval_lib.Evaluator(
        environment,
        agent.policy,
        episodes,
        seed=algorithm.seed,
        check=value_check.of_agent(agent, environment),
    )

    def evaluate(iteration: int) -> eval_lib.EvaluationResult:
        worlds.seed_if_possible(environment, 10_000_000 + 1_000 * iteration)
        return evaluator.run()

    most = None if world.has_time_limit(environment) else _MOST_STEPS
    return {
        "evaluate": evaluate,
        "limits": train.EvaluationLimits(most, most_untrained_steps),
        "find_facts": world.facts,
    }


def write_report(algorithm: Builder, folder: pathlib.Path) -> list[str]:
    """Writes report.html to the folder of a run; returns its findings.

    Args:
      algorithm: The algorithm, with whose defaults the report compares.
      folder: The folder.
    """
    algorithm.draw_pictures(folder)
    path = folder / "report.html"
    findings = report.write([folder], path, algorithm.defaults())
    return [*map(str, findings), f"The report is {path}."]
