"""Checks that an algorithm chooses the actions of an environment."""

from __future__ import annotations

from typing import Any


def check(action_spec: Any, algorithm: Any, name: str = "") -> None:
    """Raises an error if an algorithm does not choose actions of this spec.

    Args:
      action_spec: The nest of bounded specs of an action.
      algorithm: The algorithm, with its `actions` and its `title`.
      name: The environment's name, for the error.

    Raises:
      ValueError: The actions are of another kind, or continuous without bounds.
    """
    if algorithm.actions == "discrete":
        check_discrete(action_spec, algorithm.title, name)
    elif algorithm.actions == "continuous":
        check_continuous(action_spec, algorithm.title, name)


def check_space(space: Any, algorithm: Any, name: str) -> None:
    """Raises the errors of `check` without TensorFlow, for one action.

    Args:
      space: Gymnasium's space of an action; None if it is not known.
      algorithm: See `check`.
      name: See `check`.
    """
    import gymnasium

    if algorithm.actions == "discrete" and isinstance(space, gymnasium.spaces.Box):
        raise _continuous_error(algorithm.title, name, space.shape == (1,))
    is_discrete = isinstance(space, gymnasium.spaces.Discrete)
    if algorithm.actions == "continuous" and is_discrete:
        raise _discrete_error(algorithm.title, name)


def _continuous_error(title: str, name: str, has_one: bool) -> ValueError:
    bins = "set --config.num_action_bins=11, for example, or "
    return ValueError(
        f"env: got {name!r}, whose actions are continuous, but {title} chooses "
        f"among discrete ones; {bins if title == 'DQN' and has_one else ''}"
        f"train SAC: tfrl train sac --env={name}"
    )


def _discrete_error(title: str, name: str) -> ValueError:
    return ValueError(
        f"env: got {name!r}, whose actions are discrete, but {title} chooses "
        f"continuous ones; train DQN: tfrl train dqn --env={name}"
    )


def check_discrete(action_spec: Any, title: str, name: str) -> None:
    """Raises a ValueError if actions are continuous; see `check`."""
    import tensorflow as tf

    from tfrl.specs import tensor_spec

    specs = tf.nest.flatten(action_spec)
    if any(map(tensor_spec.is_continuous, specs)):
        has_one = len(specs) == 1 and specs[0].shape.num_elements() == 1
        raise _continuous_error(title, name, has_one)


def check_continuous(action_spec: Any, title: str, name: str) -> None:
    """Raises a ValueError unless actions are floats with bounds; see `check`."""
    import tensorflow as tf

    from tfrl.agents import checks
    from tfrl.specs import tensor_spec

    specs = tf.nest.flatten(action_spec)
    if not all(map(tensor_spec.is_continuous, specs)):
        raise _discrete_error(title, name)
    checks.as_continuous_action_spec(action_spec, title)
