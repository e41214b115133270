"""Draws what a world model predicts beside what was observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.figure import Figure

_MOST_FRAMES, _MOST_NUMBERS = 10, 6


def draw(
    pairs: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]], num_given: int
) -> Figure:
    """Draws a sequence: images in two rows, and each number of vectors as two lines.

    Args:
      pairs: What was observed and what is predicted of each array of an observation,
        images `[T, h, w, c]` from 0 to 1, or vectors `[T, n]`.
      num_given: The observations that the model has seen.
    """
    from matplotlib import figure

    arrays = [(np.asarray(one), np.asarray(other)) for one, other in pairs]
    images = [pair for pair in arrays if pair[0].ndim == 4]
    lines = [
        (one[:, i], other[:, i])
        for one, other in arrays
        if one.ndim == 2
        for i in range(one.shape[1])
    ][:_MOST_NUMBERS]
    rows = 2 * len(images) + -(-len(lines) // 2)
    picture = figure.Figure(figsize=(10, 1.5 * rows + 0.6), layout="constrained")
    picture.suptitle(f"Predicted from {num_given} observations and all actions")
    grid = picture.add_gridspec(rows, 2 * _MOST_FRAMES)
    for i, pair in enumerate(images):
        steps = np.unique(np.linspace(0, len(pair[0]) - 1, _MOST_FRAMES).astype(int))
        for j, (name, frames) in enumerate(
            zip(("observed", "predicted"), pair, strict=True)
        ):
            for k, t in enumerate(steps):
                axes = picture.add_subplot(grid[2 * i + j, 2 * k : 2 * k + 2])
                axes.imshow(_colours(frames[t]))
                axes.set(xticks=[], yticks=[], ylabel=name if k == 0 else "")
                if j == 0:
                    seen = "given" if t < num_given else f"step {t}"
                    axes.set_title(seen, fontsize=9)
    for i, (one, other) in enumerate(lines):
        left = _MOST_FRAMES * (i % 2)
        axes = picture.add_subplot(
            grid[2 * len(images) + i // 2, left : left + _MOST_FRAMES]
        )
        axes.axvspan(0, num_given - 1, color="0.9")
        axes.plot(one, label="observed")
        axes.plot(other, "--", label="predicted")
        axes.grid(alpha=0.3)
        if i == 0:
            axes.legend(loc="best", frameon=False, fontsize=8)
    return picture


def _colours(frame: np.ndarray) -> np.ndarray:
    """Returns an image of three colours, or of one; of other channels their mean."""
    if frame.shape[-1] != 3:
        frame = frame.mean(-1, keepdims=True).repeat(3, -1)
    return np.asarray(np.clip(frame, 0.0, 1.0))
