"""An environment whose observations are an image and a vector.

Importing this module registers it with Gymnasium as `SeenOrTold-v0`, and Gymnasium
imports the module for the name `benchmarks.workers.seen_or_told:SeenOrTold-v0`.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

_SIZE = 36  # The smallest that Stable-Baselines3's convolutions take.
_STEPS = 10


class SeenOrTold(gymnasium.Env):
    """Say left (0) or right (1), which either a lamp or a number shows.

    At each step, the other part of the observation shows nothing. A right answer is
    rewarded by 1, so that 10 is the most, 5 chance, and 7.5 a policy that knows only
    the lamp or only the number.
    """

    observation_space = gymnasium.spaces.Dict(
        image=gymnasium.spaces.Box(0, 255, (_SIZE, _SIZE, 1), np.uint8),
        number=gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32),
    )
    action_space = gymnasium.spaces.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begins an episode of ten steps."""
        super().reset(seed=seed, options=options)
        self._left = _STEPS
        return self._observation(), {}

    def step(
        self, action: Any
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Rewards the right answer, and shows the next side."""
        reward = float(action == self._side)
        self._left -= 1
        return self._observation(), reward, self._left == 0, False, {}

    def _observation(self) -> dict[str, Any]:
        image = np.zeros((_SIZE, _SIZE, 1), np.uint8)
        number = np.zeros(1, np.float32)
        self._side = int(self.np_random.integers(2))
        if self.np_random.integers(2):
            number[0] = 2.0 * self._side - 1.0
        else:
            half = _SIZE // 2
            row, column = self.np_random.integers(half - 8, size=2)
            column += half * self._side
            image[row : row + 8, column : column + 8] = 255
        return {"image": image, "number": number}


gymnasium.register("SeenOrTold-v0", f"{__name__}:SeenOrTold")
