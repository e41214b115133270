"""`FrameStackingWrapper` stacks the last observations along a new last axis."""

from __future__ import annotations

from typing import Any

import dm_env
import numpy as np
import tree

from tfrl.acme.wrappers import base
from tfrl.specs import dm_env_specs
from tfrl.utils import number_checks


class FrameStackingWrapper(base.EpisodeWrapper):
    """Stacks the last observations, `[..., num_frames]`; the newest is the last.

    Each array of a nest is stacked separately. Frames before the episode are zeros.
    `tfrl.environments.HistoryWrapper` does the same along the first axis.
    """

    def __init__(
        self,
        environment: dm_env.Environment,
        num_frames: int = 4,
        flatten: bool = False,
    ):
        """Wraps `environment`.

        Args:
          environment: The environment.
          num_frames: The number of frames, including the current one.
          flatten: Whether the last two axes become one, so that a picture `[H, W, C]`
            becomes `[H, W, C * num_frames]`, all frames of a channel side by side.

        Raises:
          ValueError: If `num_frames` is not positive.
        """
        super().__init__(environment)
        spec = environment.observation_spec()
        self._stackers = tree.map_structure(
            lambda _: FrameStacker(num_frames, flatten), spec
        )
        self._observation_spec = tree.map_structure(
            lambda leaf, stacker: stacker.update_spec(leaf), spec, self._stackers
        )

    def observation_spec(self) -> Any:
        """The specs of the stacks, without bounds."""
        return self._observation_spec

    def _reset(self) -> dm_env.TimeStep:
        for stacker in tree.flatten(self._stackers):
            stacker.reset()
        return super()._reset()

    def _changed(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
        return timestep._replace(
            observation=tree.map_structure_up_to(
                self._stackers,
                lambda stacker, frame: stacker.step(np.asarray(frame)),
                self._stackers,
                timestep.observation,
            )
        )


class FrameStacker:
    """Stacks the last frames of one array."""

    def __init__(self, num_frames: int, flatten: bool = False):
        """Creates a stacker without frames.

        Args:
          num_frames: The number of frames of a stack.
          flatten: See `FrameStackingWrapper`.

        Raises:
          ValueError: If `num_frames` is not positive.
        """
        number_checks.check_integer(
            "num_frames",
            num_frames,
            1,
            remedy="give the number of frames to stack, including the current one",
        )
        self._num_frames = num_frames
        self._flatten = flatten
        self._frames: np.ndarray | None = None

    @property
    def num_frames(self) -> int:
        """The number of frames of a stack."""
        return self._num_frames

    def reset(self) -> None:
        """Forgets all frames."""
        self._frames = None

    def step(self, frame: np.ndarray) -> np.ndarray:
        """Adds a frame `[...]`; returns the stack, a new array `[..., num_frames]`."""
        if self._frames is None:
            self._frames = np.zeros((*frame.shape, self._num_frames), frame.dtype)
        self._frames = np.concatenate(
            [self._frames[..., 1:], frame[..., np.newaxis]], axis=-1
        )
        if not self._flatten:
            return self._frames
        return self._frames.reshape(*self._frames.shape[:-2], -1)

    def update_spec(self, spec: dm_env_specs.Array) -> dm_env_specs.Array:
        """Returns the spec of stacks of frames of `spec`."""
        stacker = FrameStacker(self._num_frames, self._flatten)
        stack = stacker.step(np.zeros(spec.shape, spec.dtype))
        return dm_env_specs.Array(stack.shape, stack.dtype, spec.name)
