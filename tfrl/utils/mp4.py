"""Writes frames to an MP4 file."""

from __future__ import annotations

import contextlib
import os
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
        yield video.append_data
