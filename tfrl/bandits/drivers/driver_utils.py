"""Frames of bandits, for drivers that a program writes itself."""

from __future__ import annotations

from tfrl.trajectories import policy_step, time_step, trajectory


def trajectory_for_bandit(
    initial_step: time_step.TimeStep,
    action_step: policy_step.PolicyStep,
    final_step: time_step.TimeStep,
) -> trajectory.Trajectory:
    """Returns the frame of one round, from FIRST to LAST.

    Args:
      initial_step: The time step with the round's observation; it may be the LAST step
        of the round before.
      action_step: The policy's action.
      final_step: The time step that the environment returned for the action.
    """
    return trajectory.from_transition(
        time_step.new_round(initial_step), action_step, final_step
    )
