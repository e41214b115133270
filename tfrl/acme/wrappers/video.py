"""`VideoWrapper` films some episodes."""

from __future__ import annotations

import math
import os
import pathlib
from typing import Any

import dm_env
import numpy as np
from PIL import Image

from tfrl.acme.wrappers import base
from tfrl.typing import types
from tfrl.utils import mp4, number_checks


class VideoWrapper(base.EpisodeWrapper):
    """Films every `record_every`-th episode, and writes it as an MP4 when it ends.

    The files are `<path>/videos/<filename>_<number of the episode>.mp4`. An episode
    that is ended early by `reset` or `close` is written up to this point.
    """

    def __init__(
        self,
        environment: dm_env.Environment,
        *,
        path: str | os.PathLike[str] = "~/tfrl",
        filename: str = "",
        record_every: int = 100,
        frame_rate: int = 30,
        figsize: float | tuple[int, int] | None = None,
    ):
        """Wraps `environment`.

        Args:
          environment: The environment. Its observations are pictures; for others,
            override `render_frame`.
          path: The directory of the directory `videos`; `~` is the user's home
            directory.
          filename: The start of the files' names.
          record_every: The number of episodes from one film to the next.
          frame_rate: Frames per second.
          figsize: The size of the pictures in pixels: `(height, width)`, or the length
            of the diagonal; None for the frames' size.

        Raises:
          ValueError: If `record_every` is not positive.
        """
        super().__init__(environment)
        number_checks.check_integer(
            "record_every", record_every, 1, remedy="pass 1 to film every episode"
        )
        self._directory = pathlib.Path(path).expanduser() / "videos"
        self._filename = filename
        self._record_every = record_every
        self._frame_rate = frame_rate
        self._figsize = figsize
        self._num_episodes = 0
        self._frames: list[np.ndarray] = []

    def render_frame(self, observation: types.NestedArray) -> Any:
        """Returns the picture of an observation, uint8 `[H, W, 3]` or `[H, W]`.

        By default it is the observation. An environment of Gymnasium that was made with
        `render_mode="rgb_array"` renders pictures itself: `self.environment.render()`.
        """
        return observation

    def close(self) -> None:
        """Writes the film of an unfinished episode, and closes."""
        self._write()
        super().close()

    def _reset(self) -> dm_env.TimeStep:
        self._write()
        self._num_episodes += 1
        return super()._reset()

    def _changed(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
        if self._num_episodes % self._record_every == 0:
            self._frames.append(self._picture(timestep.observation))
            if timestep.last():
                self._write()
        return timestep

    def _picture(self, observation: types.NestedArray) -> np.ndarray:
        frame = np.asarray(self.render_frame(observation))
        if frame.dtype != np.uint8 or not (
            frame.ndim == 2 or (frame.ndim == 3 and frame.shape[2] == 3)
        ):
            raise ValueError(
                f"render_frame: got a frame of dtype {frame.dtype} and shape "
                f"{frame.shape}, expected uint8 [height, width, 3] or [height, width]; "
                "override render_frame to return such pictures."
            )
        if self._figsize is None:
            return frame.copy()
        height, width = _scaled(frame.shape[:2], self._figsize)
        return np.asarray(Image.fromarray(frame).resize((width, height)))

    def _write(self) -> None:
        if not self._frames:
            return
        frames, self._frames = self._frames, []
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"{self._filename}_{self._num_episodes:04d}.mp4"
        with mp4.writer(path, self._frame_rate) as add:
            for frame in frames:
                add(frame)


def _scaled(
    shape: tuple[int, ...], figsize: float | tuple[int, int]
) -> tuple[int, ...]:
    """Returns the height and the width for `figsize`."""
    if isinstance(figsize, tuple):
        return figsize
    factor = figsize / math.hypot(*shape)
    return tuple(round(length * factor) for length in shape)
