"""Reads recorded steps from arrays, such as the dictionaries of D4RL and d3rlpy."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.datasets import episodes
from tfrl.trajectories import trajectory

# The names of each array, which may be singular or plural.
_NAMES = {
    "observations": ("observation", "obs"),
    "actions": ("action",),
    "rewards": ("reward",),
    "terminals": (
        "terminal",
        "terminated",
        "termination",
        "terminations",
        "done",
        "dones",
    ),
    "timeouts": ("timeout", "truncated", "truncation", "truncations"),
    "next_observations": ("next_observation", "next_obs"),
}
_NEEDED = ("observations", "actions", "rewards", "terminals")
_KNOWN = [*_NAMES, *(name for others in _NAMES.values() for name in others)]


def load_arrays(arrays: Mapping[str, Any], spec: Any = None) -> tf.data.Dataset:
    """Returns the frames of recorded steps, in order, as `Trajectory`s.

    The names of the arrays are those of D4RL and d3rlpy; a singular, such as "reward",
    is the same. After each episode comes a boundary, which holds the last observation.
    An episode ends with a terminal, a timeout or the data. `next_observations` have the
    last observation of an episode that a timeout ends. Without them, its last step is
    left out, since the observation after it is not known.

    Args:
      arrays: By name: observations and actions, nests of arrays `[N, ...]`; rewards and
        terminals `[N]`; and perhaps timeouts `[N]` and next_observations. Infos and
        metadata, such as D4RL's "infos/qpos", are ignored.
      spec: See `load_minari`.

    Raises:
      TypeError: `arrays` is not a mapping.
      ValueError: An array is missing or unknown, lengths or shapes differ, an end is
        neither true nor false, there is no whole step, or the frames do not match
        `spec`.
    """
    found = _by_name(arrays)
    ends = episodes.as_flags("data: terminals", found["terminals"])
    timeouts = episodes.as_flags(
        "data: timeouts", found.get("timeouts", np.zeros_like(ends))
    )
    lengths = {name: _length(name, nest) for name, nest in found.items()}
    if len({*lengths.values()}) > 1:
        told = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise ValueError(
            f"data: got arrays of different lengths, {told}, expected one row a step "
            "in each; next_observations hold the observation after the last step."
        )
    shapes = {
        name: tf.nest.map_structure(lambda array: array.shape[1:], found[name])
        for name in ("observations", "next_observations")
        if name in found
    }
    if (
        shapes.get("next_observations", shapes["observations"])
        != shapes["observations"]
    ):
        raise ValueError(
            f"data: got next_observations of shape {shapes['next_observations']} a "
            f"step, expected {shapes['observations']}, as observations have; give the "
            "observations after the steps."
        )
    last = np.flatnonzero(ends | timeouts)
    bounds = [0, *(last + 1), len(ends)]

    def read() -> Iterator[trajectory.Trajectory]:
        for begin, end in itertools.pairwise(bounds):
            frames = _episode(found, ends, begin, end)
            if frames is not None:
                yield frames

    return episodes.dataset_of(
        read,
        spec,
        "data",
        f"data: got {len(ends)} steps, of which none has an observation after it, "
        "expected some; give next_observations.",
    )


def _by_name(arrays: Any) -> dict[str, Any]:
    """Returns the arrays by D4RL's names."""
    if not isinstance(arrays, Mapping):
        raise TypeError(
            f"data: got a {type(arrays).__name__}, expected the name of files, or a "
            f"dict of arrays with the names {', '.join(_NEEDED)}."
        )
    _check_names([*map(str, arrays)])
    found = {}
    for name, others in _NAMES.items():
        given = [each for each in (name, *others) if each in arrays]
        if len(given) > 1:
            raise ValueError(
                f"data: got both {given[0]!r} and {given[1]!r}, expected one of them "
                f"for {name}; leave one out."
            )
        if given:
            found[name] = episodes.as_arrays(arrays[given[0]], f"data: {name}")
    missing = [name for name in _NEEDED if name not in found]
    if missing:
        raise ValueError(
            f"data: got arrays with the names {', '.join(map(repr, arrays))}, without "
            f"{missing[0]}; give {', '.join(_NEEDED)}, and timeouts if there are some."
        )
    return found


def _check_names(given: Sequence[str]) -> None:
    """Raises a ValueError for a name that is neither an array's nor an info's."""
    for name in given:
        if name in _KNOWN or name.split("/")[0].rstrip("s") in ("info", "metadata"):
            continue
        near = difflib.get_close_matches(name.lower(), _KNOWN, n=1)
        meant = f"did you mean {near[0]!r}?" if near else "leave it out."
        raise ValueError(
            f"data: got an array {name!r}, expected some of {', '.join(_NAMES)}; "
            f"{meant}"
        )


def _length(name: str, nest: Any) -> int:
    lengths = {leaf.shape[:1] for leaf in tf.nest.flatten(nest)}
    if len(lengths) != 1 or () in lengths:
        raise ValueError(
            f"data: got parts of {name} of {len(lengths)} lengths, expected one row a "
            "step in each."
        )
    return int(lengths.pop()[0])


def _episode(
    found: Mapping[str, Any], ends: np.ndarray, begin: int, end: int
) -> trajectory.Trajectory | None:
    """Returns the frames of an episode; None if no step has an observation after it."""
    following = found.get("next_observations")
    is_terminal = end > begin and bool(ends[end - 1])
    steps = end
    if following is None and not is_terminal:
        steps = end - 1
    if steps <= begin:
        return None

    def rows(nest: Any) -> Any:
        return tf.nest.map_structure(lambda array: np.asarray(array)[begin:steps], nest)

    def with_last(array: Any, after: Any = None) -> Any:
        # The observation after a terminal is not used.
        last = array[min(steps, end - 1)] if after is None else after[steps - 1]
        return np.concatenate([array[begin:steps], np.asarray(last)[np.newaxis]])

    nests = [tf.nest.map_structure(np.asarray, found["observations"])]
    if following is not None:
        nests.append(tf.nest.map_structure(np.asarray, following))
    return episodes.frames_of_episode(
        tf.nest.map_structure(with_last, *nests),
        rows(found["actions"]),
        rows(found["rewards"]).reshape(-1),
        ends[begin:steps],
    )
