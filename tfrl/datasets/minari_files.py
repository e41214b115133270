"""Reads Minari's datasets from their HDF5 files.

The layout is Minari 0.5's: one group per episode, `episode_0` and so on, with
`observations` `[T + 1, ...]`, `actions`, `rewards`, `terminations` and `truncations`
`[T, ...]`. A dict of arrays is a group, and a tuple a group of `_index_0` and so on.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tfrl.datasets import episodes
from tfrl.trajectories import trajectory

_FILE = pathlib.Path("data", "main_data.hdf5")
# A byte of gzip or LZF stands for no more than so many.
_MOST_COMPRESSED = 1_100
_UNWRITTEN = 2**20  # HDF5 need not write an array of zeros; the most bytes of one.


def load_minari(path: str | os.PathLike, spec: Any = None) -> tf.data.Dataset:
    """Returns the frames of a Minari dataset, in order, as `Trajectory`s.

    After each episode comes a boundary, which holds the last observation. An episode
    that ends without a termination counts as truncated. Infos are left out.

    Args:
      path: The folder of the dataset, such as `~/.minari/datasets/mujoco/hopper/
        expert-v0`, or its file `main_data.hdf5`.
      spec: The `Trajectory` of specs of the frames, such as an agent's
        `collect_data_spec`. Arrays are converted to its dtypes. None takes the shapes
        and dtypes of the first episode, with float32 instead of float64.

    Raises:
      ImportError: h5py is not installed.
      FileNotFoundError: There is no such file.
      ValueError: The file holds no episodes, or they do not match `spec`.
    """
    folder = pathlib.Path(path).expanduser()
    file = folder / _FILE if folder.is_dir() else folder
    if not file.is_file():
        raise FileNotFoundError(
            f"path: got {str(path)!r}, where there is no "
            f"{_FILE if folder.is_dir() else 'file or folder'}, expected the folder of "
            "a dataset of Minari's, in its format hdf5; fetch one with `minari "
            "download NAME`, to ~/.minari/datasets/NAME."
        )
    return episodes.dataset_of(
        lambda: _episodes(file),
        spec,
        str(file),
        f"path: {file} has no group episode_0, expected one group an episode; "
        "write it with Minari, data_format='hdf5'.",
    )


def _episodes(file: pathlib.Path) -> Iterator[trajectory.Trajectory]:
    try:
        import h5py
    except ImportError as error:
        raise ImportError(
            "load_minari: h5py is not installed, expected it, to read HDF5 files; pip "
            "install 'tfrl[minari]'."
        ) from error
    with h5py.File(file, "r") as opened:
        number = 0
        while (name := f"episode_{number}") in opened:
            group = _child(opened, name)
            try:
                yield episodes.frames_of_episode(
                    *(
                        _read(_child(group, name))
                        for name in (
                            "observations",
                            "actions",
                            "rewards",
                            "terminations",
                        )
                    )
                )
            except (KeyError, ValueError) as error:
                raise ValueError(f"{file} episode_{number}: {error}") from error
            number += 1


def _read(node: Any) -> Any:
    """Returns an array, or the arrays of a group as a dict or tuple."""
    if not hasattr(node, "keys"):
        _check_own(node)
        array = node[()]
        if array.dtype == object:
            raise ValueError(
                f"{node.name}: got text or compressed pictures, expected numbers; make "
                "the dataset with jpeg_encoding=False."
            )
        return array
    parts = {name: _read(_child(node, name)) for name in node}
    if parts and all(name.startswith("_index_") for name in parts):
        return tuple(parts[f"_index_{i}"] for i in range(len(parts)))
    return parts


def _child(group: Any, name: str) -> Any:
    """Returns what a group holds; raises a ValueError for a link to somewhere else."""
    link = group.get(name, getlink=True)
    if link is not None and type(link).__name__ != "HardLink":
        raise ValueError(f"{group.name}: {name} is a link, expected numbers.")
    return group[name]


def _check_own(node: Any) -> None:
    """Raises a ValueError unless the file itself holds an array's numbers.

    HDF5 reads numbers from other files, if a file says so, and a few bytes can stand
    for an array of any size.
    """
    if node.external or node.is_virtual:
        raise ValueError(
            f"{node.name}: its numbers are in other files; expected them in this one."
        )
    held = _MOST_COMPRESSED * node.id.get_storage_size()
    if node.nbytes > max(held, _UNWRITTEN):
        raise ValueError(
            f"{node.name}: its shape is {node.shape}, and the file has "
            f"{node.id.get_storage_size():,} bytes of it; expected all."
        )
