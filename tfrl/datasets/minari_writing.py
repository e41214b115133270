"""Writes frames as a Minari dataset, with Minari's own storage.

Minari keeps datasets by their ids, such as `Pendulum-v1/sac-v0`, in the folder
`MINARI_DATASETS_PATH`, or else `~/.minari/datasets`.
"""

from __future__ import annotations

import importlib.metadata
import pathlib
import tempfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from tfrl.specs import gym_spaces
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

if TYPE_CHECKING:
    from gymnasium.envs import registration


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
        episodes = _Episodes(frames, seed)
        storage.update_episodes(episodes)
        if not storage.total_episodes:
            raise ValueError(
                f"frames: got {episodes.num_frames}, expected at least one step and "
                "the observation after it; record more."
            )
        if folder.exists():
            folder.rename(f"{unfinished}/replaced")
        whole.rename(folder)
    return episodes.num_frames


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
