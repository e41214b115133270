"""What `tfrl record --format=minari` says of a run to Minari."""

from __future__ import annotations

import copy
import pathlib
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import tree

from tfrl import datasets, environments
from tfrl.algorithms import registry, run_folders
from tfrl.environments import time_limits
from tfrl.specs import array_spec, gym_spaces, tensor_spec


def default_id(environment: str, name: str) -> str:
    """Returns the id of the dataset of a run.

    Args:
      environment: The environment's name.
      name: The name of the run's folder.
    """
    return (
        "/".join(re.sub(r"[^\w-]", "-", part) for part in (environment, name)) + "-v0"
    )


def write(
    frames: Iterable[Any],
    dataset_id: str,
    environment: environments.TFEnvironment,
    run: pathlib.Path,
    seed: int | None,
) -> int:
    """Writes frames as a dataset of Minari's; see `datasets.write_minari`.

    Args:
      frames: The frames.
      dataset_id: The id.
      environment: The environment that they are from.
      run: The folder of the run whose policy acted.
      seed: The seed of the first episode, if it is known.

    Returns:
      The number of frames.
    """
    has_settings = (run / "config.json").exists()
    settings = run_folders.read(run) if has_settings else {}
    specs = (environment.observation_spec(), environment.action_spec())
    observation_spec, action_spec = map(tensor_spec.to_nest_array_spec, specs)
    return datasets.write_minari(
        frames,
        dataset_id,
        observation_spec,
        action_spec,
        env_spec=_env_spec(environment, observation_spec, action_spec),
        seed=seed,
        algorithm_name=registry.name_of(settings),
    )


def _env_spec(
    environment: environments.TFEnvironment, observation_spec: Any, action_spec: Any
) -> Any:
    """Returns Gymnasium's spec of an environment, with its time limit.

    None if it is not Gymnasium's; if Minari cannot write it down, such as an
    environment that was registered by its class; or if its observations or actions were
    changed for the algorithm, so that Minari would make an environment which the frames
    do not fit.
    """
    if not isinstance(environment, environments.TFPyEnvironment):
        return None
    inner = environment.envs[0]
    spec, gym = getattr(inner, "spec", None), getattr(inner, "gym", None)
    if spec is None or gym is None:
        return None
    for space, given in (
        (gym.observation_space, observation_spec),
        (gym.action_space, action_spec),
    ):
        if not _are_alike(gym_spaces.spec_from_gym_space(space), given):
            return None
    spec = copy.deepcopy(spec)
    # The limit may be a wrapper of our own.
    spec.max_episode_steps = spec.max_episode_steps or time_limits.find(environment)
    try:
        spec.to_json()
    except (TypeError, ValueError):
        return None
    return spec


def _are_alike(one: Any, other: Any) -> bool:
    """Whether arrays of one spec are arrays of the other, up to their dtypes."""
    first, second = (
        [(path, array_spec.BoundedArraySpec.from_spec(leaf)) for path, leaf in found]
        for found in map(tree.flatten_with_path, (one, other))
    )
    return len(first) == len(second) and all(
        path == other_path
        and a.shape == b.shape
        and array_spec.is_discrete(a) == array_spec.is_discrete(b)
        and bool(np.all(a.minimum == b.minimum) and np.all(a.maximum == b.maximum))
        for (path, a), (other_path, b) in zip(first, second, strict=True)
    )
