"""Minari's data sets: reads their HDF5 files, and writes frames as one of them.

Minari keeps datasets by their ids, such as `Pendulum-v1/sac-v0`, in the folder
`MINARI_DATASETS_PATH`, or else `~/.minari/datasets`. Its own storage writes them; they
are read with h5py alone.
"""

from __future__ import annotations

import copy
import importlib.metadata
import os
import pathlib
import re
import tempfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
import tree

from tfrl import environments
from tfrl.datasets import episodes
from tfrl.environments import time_limits
from tfrl.specs import array_spec, gym_spaces, tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

if TYPE_CHECKING:
    from gymnasium.envs import registration

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


def default_id(environment: str, name: str) -> str:
    """Returns the id of the dataset of a run.

    Args:
      environment: The environment's name.
      name: The name of the run's folder.
    """
    return (
        "/".join(re.sub(r"[^\w-]", "-", part) for part in (environment, name)) + "-v0"
    )


def minari_folder(dataset_id: str, argument: str = "dataset_id") -> pathlib.Path:
    """Returns the folder where Minari keeps the dataset of an id.

    Args:
      dataset_id: The id.
      argument: The argument's name, for errors.

    Raises:
      ImportError: Minari is not installed.
      ValueError: The id has another form than Minari's.
    """
    try:
        import h5py as h5py
        from minari.dataset import minari_dataset
        from minari.storage import get_dataset_path
    except ImportError as error:
        raise ImportError(
            f"Minari's format: {error.name} is not installed, expected it, to write "
            "datasets; pip install 'tfrl[minari]'."
        ) from error
    try:
        minari_dataset.parse_dataset_id(dataset_id)
    except (TypeError, ValueError):  # An id without a version is a TypeError.
        raise ValueError(
            f"{argument}: got {dataset_id!r}, expected the id of a Minari dataset, of "
            "letters, digits, hyphens and underscores, with a version at its end and "
            "folders before it if you like; give one such as Pendulum-v1/sac-v0."
        ) from None
    folder: pathlib.Path = get_dataset_path(dataset_id)
    return folder


def write_minari(
    frames: Iterable[trajectory.Trajectory],
    dataset_id: str,
    observation_spec: Any,
    action_spec: Any,
    *,
    env_spec: registration.EnvSpec | None = None,
    seed: int | None = None,
    algorithm_name: str = "",
) -> int:
    """Writes frames as a Minari dataset, which replaces an older one at the end.

    An episode ends at its boundary, which has its last observation. Where the boundary
    is missing, at the end of the frames of a replay buffer, the last frame stands in
    for it, and the episode counts as truncated. If an error or the end of the process
    prevents the end, an older dataset stays.

    Args:
      frames: Frames of one environment, in order, as arrays without batch dimension.
      dataset_id: The id; see `minari_folder`.
      observation_spec: The array specs of the observations.
      action_spec: The array specs of the actions.
      env_spec: Gymnasium's spec of the environment, with which Minari makes it again.
      seed: The seed of the first episode. The others continue its random numbers.
      algorithm_name: The name of the algorithm that acted.

    Returns:
      The number of frames.

    Raises:
      ImportError: Minari is not installed.
      ValueError: The id is none, there is no whole step, or the frames have discounts
        which terminations cannot express.
    """
    folder = minari_folder(dataset_id)
    from minari import namespace
    from minari.dataset.minari_dataset import parse_dataset_id
    from minari.dataset.minari_storage import MinariStorage

    space, *_ = parse_dataset_id(dataset_id)
    if space is not None and space not in namespace.list_local_namespaces():
        namespace.create_namespace(space)
    # Minari does not look into hidden folders.
    with tempfile.TemporaryDirectory(
        prefix=f".{folder.name}.", dir=folder.parent
    ) as unfinished:
        whole = pathlib.Path(unfinished) / folder.name
        whole.mkdir()
        storage = MinariStorage.new(
            whole / "data",
            gym_spaces.space_from_spec(observation_spec),
            gym_spaces.space_from_spec(action_spec),
            env_spec,
            jpeg_encoding=False,
        )
        about = {"algorithm_name": algorithm_name} if algorithm_name else {}
        version = importlib.metadata.version("minari")
        storage.update_metadata(
            {"dataset_id": dataset_id, "minari_version": version, **about}
        )
        buffers = _Episodes(frames, seed)
        storage.update_episodes(buffers)
        if not storage.total_episodes:
            raise ValueError(
                f"frames: got {buffers.num_frames}, expected at least one step and "
                "the observation after it; record more."
            )
        if folder.exists():
            folder.rename(f"{unfinished}/replaced")
        whole.rename(folder)
    return buffers.num_frames


def write_from(
    environment: environments.TFEnvironment,
    frames: Iterable[trajectory.Trajectory],
    dataset_id: str,
    *,
    seed: int | None = None,
    algorithm_name: str = "",
) -> int:
    """Writes frames of an environment, with its spec; see `write_minari`."""
    specs = (environment.observation_spec(), environment.action_spec())
    observation_spec, action_spec = map(tensor_spec.to_nest_array_spec, specs)
    return write_minari(
        frames,
        dataset_id,
        observation_spec,
        action_spec,
        env_spec=_env_spec(environment, observation_spec, action_spec),
        seed=seed,
        algorithm_name=algorithm_name,
    )


class _Episodes:
    """Minari's buffers of the episodes in some frames, one at a time.

    Attributes:
      num_frames: The number of frames so far.
    """

    def __init__(
        self, frames: Iterable[trajectory.Trajectory], seed: int | None
    ) -> None:
        self._frames, self._seed = frames, seed
        self.num_frames = 0

    def __iter__(self) -> Iterator[Any]:
        seed = self._seed
        for episode in self._split():
            if len(episode) > 1:
                yield _buffer(episode, seed)
            seed = None

    def _split(self) -> Iterator[list[trajectory.Trajectory]]:
        episode: list[trajectory.Trajectory] = []
        for frame in self._frames:
            self.num_frames += 1
            if episode and frame.step_type == ts.StepType.FIRST:
                yield episode
                episode = []
            episode.append(frame)
            if frame.step_type == ts.StepType.LAST:
                yield episode
                episode = []
        yield episode


def _buffer(episode: list[trajectory.Trajectory], seed: int | None) -> Any:
    """Returns Minari's buffer of an episode, whose last frame is the boundary.

    Raises:
      ValueError: A discount is neither 1 nor that of a termination.
    """
    from minari.data_collector import EpisodeBuffer

    whole = tf.nest.map_structure(lambda *parts: np.stack(parts), *episode)
    steps = tf.nest.map_structure(lambda array: array[:-1], whole)
    discounts = steps.discount
    terminations = discounts == 0
    if terminations[:-1].any() or not np.isin(discounts, (0, 1)).all():
        raise ValueError(
            f"discount: got {np.unique(discounts)} in an episode, expected 1 before "
            "its last step, and 0 or 1 there, since Minari keeps terminations and no "
            "discounts; record in the format tfrl."
        )
    truncations = np.zeros_like(terminations)
    truncations[-1] = not terminations[-1]
    return EpisodeBuffer(
        seed=seed,
        observations=whole.observation,
        actions=steps.action,
        rewards=steps.reward,
        terminations=terminations,
        truncations=truncations,
        infos={},
    )


def _env_spec(
    environment: environments.TFEnvironment, observation_spec: Any, action_spec: Any
) -> registration.EnvSpec | None:
    """Returns Gymnasium's spec of an environment, with its time limit, for its frames.

    None if it is not Gymnasium's; if Minari cannot write it down, such as an
    environment that was registered by its class; or if its observations or actions were
    changed for the algorithm, so that Minari would make an environment which the frames
    do not fit.
    """
    if not isinstance(environment, environments.TFPyEnvironment):
        return None
    inner = environment.envs[0]
    spec: Any = getattr(inner, "spec", None)
    gym: Any = getattr(inner, "gym", None)
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
