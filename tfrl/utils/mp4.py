"""Writes frames to an MP4 file."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import imageio.v2 as imageio
import numpy as np

from tfrl.system import files

# The comment of a film, by which it is known as ours.
MARK = "made by tfrl"


@contextlib.contextmanager
def writer(
    path: str | os.PathLike[str], fps: float
) -> Iterator[Callable[[np.ndarray], None]]:
    """Opens a video; the file appears when it is complete.

    Args:
      path: The file to write.
      fps: Frames per second.

    Yields:
      A function that adds a frame, uint8 `[height, width, 3]` or `[height, width]`. The
      frames of a video have one size; if it is odd, they are scaled to an even one.
    """
    # The encoder needs even widths and heights; most environments have them.
    video: Any
    with (
        files.replacing(path) as new,
        imageio.get_writer(
            new,
            fps=fps,
            macro_block_size=2,
            output_params=["-metadata", f"comment={MARK}"],
        ) as video,
    ):
        is_first = True

        def add(frame: np.ndarray) -> None:
            nonlocal is_first
            if not is_first:
                video.append_data(frame)
                return
            is_first = False
            with warnings.catch_warnings():
                # The first frame starts the encoder, by a fork that does nothing but
                # replace itself; JAX warns of any fork.
                warnings.filterwarnings("ignore", r"os\.fork\(\) was called")
                video.append_data(frame)

        yield add
