"""MiniGrid's observations as arrays: flat, or images alone.

An observation of MiniGrid is a dictionary with an image of the cells around the agent,
the agent's direction, and a text that says what to do. No network here reads texts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np


def wrappers_of(kind: str) -> Sequence[Callable[[Any], Any]]:
    """Returns the wrappers for a kind of observations.

    Observations become float32, because integers have no normalizer.

    Args:
      kind: "flat" joins the image with the one-hot letters of the text, as RL Zoo's
        settings assume, `[2835]` by default; "image" is the image alone, `[7, 7, 3]`.
    """
    from minigrid import wrappers

    as_arrays = wrappers.ImgObsWrapper if kind == "image" else wrappers.FlatObsWrapper
    return [
        as_arrays,
        functools.partial(gymnasium.wrappers.DtypeObservation, dtype=np.float32),
    ]
