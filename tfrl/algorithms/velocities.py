"""Environments of Gymnasium without their velocities, by the names of RL Zoo.

CartPoleNoVel-v1 is CartPole-v1 with only the positions as observations. An agent
without memory cannot know which way the pole falls.
"""

from __future__ import annotations

# The elements of an observation that are not velocities.
_POSITIONS = {
    "CartPole": (0, 2),
    "MountainCar": (0,),
    "MountainCarContinuous": (0,),
    "Pendulum": (0, 1),
}


def split(name: str) -> tuple[str, tuple[int, ...] | None]:
    """Splits the name of an environment without velocities.

    Returns:
      The name of the environment with velocities, and the elements of its observation
      that are kept; `name` itself and None for any other environment.
    """
    kind, marker, version = name.partition("NoVel-")
    if not marker or kind not in _POSITIONS:
        return name, None
    return f"{kind}-{version}", _POSITIONS[kind]
