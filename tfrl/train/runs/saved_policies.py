"""The saved policies of a run, which are replaced whole, and repaired if damaged."""

from __future__ import annotations

import math
import os
import pathlib
import warnings
from collections.abc import Sequence

from tfrl.agents import tf_agent
from tfrl.policies import policy_saver
from tfrl.policies.saving import saved_model
from tfrl.system import files, log
from tfrl.train.runs import run_directory


class SavedPolicies:
    """Writes an agent's policy to directories, each of which is replaced whole."""

    def __init__(self, agent: tf_agent.TFAgent) -> None:
        """Traces the agent's policy.

        Args:
          agent: The agent; its policy and its train step are saved.
        """
        self._saver = policy_saver.PolicySaver(
            agent.policy, batch_size=None, train_step=agent.train_step_counter
        )

    def save(self, target: pathlib.Path) -> None:
        """Saves the policy with its current weights, and replaces `target`."""
        with files.beside(target) as new:
            self._saver.save(str(new))
            _replace(new, target)

    def repair(
        self,
        targets: Sequence[pathlib.Path],
        directory: run_directory.RunDirectory,
        iteration: int,
        best: float,
    ) -> float:
        """Replaces missing or damaged policies by the current policy, and warns.

        The best policy of the run is then lost, unless it is the current one.

        Args:
          targets: The paths of the policies.
          directory: The directory of the run.
          iteration: The run's iteration.
          best: The mean return of the best policy; minus infinity if unknown.

        Returns:
          The mean return of the policy in `directory.policy`.
        """
        for target in targets:
            _recover(target)
            fault = saved_model.find_fault(target)
            if fault is None:
                continue
            self.save(target)
            said = f"POLICY LOST: {target} {fault}; it was written again"
            now = directory.evaluation_return(iteration)
            is_best = now is not None and math.isclose(now, best, rel_tol=1e-5)
            if target != directory.policy or best == float("-inf") or is_best:
                _warn(f"{said}.")
                continue
            _warn(
                f"{said} with the policy of iteration {iteration:,}, of mean return "
                f"{'unknown' if now is None else now}. The best policy so far, of mean "
                f"return {best:g}, is lost; restore the folder from a copy if you have "
                "one."
            )
            best = float("-inf") if now is None else now
        return best


def _replace(new: pathlib.Path, target: pathlib.Path) -> None:
    """Replaces the directory `target` by the directory `new`.

    If the replacement was interrupted, `_recover` restores `target`.
    """
    old = target.with_name(target.name + ".old")
    files.remove(old)
    if target.exists():
        os.rename(target, old)
    os.rename(new, target)
    files.remove(old)


def _recover(target: pathlib.Path) -> None:
    """Restores a directory whose replacement was interrupted."""
    old = target.with_name(target.name + ".old")
    if old.exists() and not target.exists():
        os.rename(old, target)


def _warn(text: str) -> None:
    warnings.warn(log.plain(text), RuntimeWarning, stacklevel=5)
