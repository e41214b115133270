"""The evaluations, logs, checkpoints and films of an algorithm's run."""

from __future__ import annotations

import functools
import pathlib
from typing import Any

from tfrl import agents
from tfrl import eval as evaluation
from tfrl.algorithms import settings as settings_lib
from tfrl.algorithms import worlds
from tfrl.reports import report

# Of each environment in the evaluation of an untrained policy, whose episodes may be
# long; and in all evaluations, where no time limit ends the episodes.
_MOST_STEPS = 1000


def make(
    world: worlds.World,
    s: settings_lib.Settings,
    agent: agents.TFAgent,
    title: str,
    *,
    films: bool,
    evaluates_untrained: bool,
    shows_progress: bool = True,
    reports: bool = True,
    continue_stopped: bool = False,
) -> dict[str, Any]:
    """Returns the arguments of `train.Run`, except for loop, directory and length.

    Args:
      world: Where the policy is evaluated and filmed.
      s: The settings.
      agent: The agent.
      title: The algorithm's name for readers.
      films: Whether the best policy is filmed at the end.
      evaluates_untrained: Whether the policy is evaluated before the first iteration.
      shows_progress: Whether the run shows its progress.
      reports: Whether to write report.html, and to show its findings.
      continue_stopped: Whether a run that a callback has stopped continues.
    """
    from tfrl.eval import value_check  # Not at the top: it imports TensorFlow.

    # All episodes of an evaluation run side by side, from different starts.
    environment = world.make_evaluation(s.num_eval_episodes, 0)
    evaluator = evaluation.Evaluator(
        environment,
        agent.policy,
        s.num_eval_episodes,
        seed=s.seed,
        check=value_check.of_agent(agent, environment),
    )

    most = None if world.has_time_limit(environment) else _MOST_STEPS

    def evaluate(iteration: int) -> evaluation.EvaluationResult:
        worlds.seed_if_possible(environment, 10_000_000 + 1_000 * iteration)
        return evaluator.run()

    return {
        "evaluate": evaluate,
        "eval_interval": s.eval_interval,
        "log_interval": s.log_interval,
        "checkpoint_interval": s.checkpoint_interval,
        "video_environment": world.make_film if films else None,
        "max_eval_steps": most,
        "max_untrained_eval_steps": _MOST_STEPS if evaluates_untrained else 0,
        "shows_progress": shows_progress,
        "report": functools.partial(write_report, s) if reports else None,
        "continue_stopped": continue_stopped,
        "find_facts": world.facts,
        "title": f"{title} on {world.name}, seed {s.seed}",
    }


def write_report(s: settings_lib.Settings, folder: pathlib.Path) -> list[str]:
    """Writes report.html to the folder of a run; returns its findings.

    Args:
      s: The settings, whose defaults the report compares with.
      folder: The folder.
    """
    path = folder / "report.html"
    findings = report.write([folder], path, s.default_values())
    return [*map(str, findings), f"The report is {path}."]
