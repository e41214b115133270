"""DreamerV3, which learns in the imagination of a world model.

Hafner et al. (2025). The equations are in `tfrl.agents`.
"""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

from tfrl import agents, utils
from tfrl.algorithms import mixins, off_policy, parts
from tfrl.algorithms.settings import (
    FROM_0,
    SIZE,
    SIZE_OR_0,
    field,
    integer,
    live,
    one_of,
    rate,
)
from tfrl.system import files
from tfrl.train.runs import run_files

_GIVEN = 5  # The observations that the model sees before it imagines.


class Dreamer(mixins.FinalRate, mixins.Lambda, off_policy.Replayed):
    """DreamerV3: an actor that learns in a world model (Hafner et al., 2025).

    By default the settings are the authors' for control from vectors, with an update
    for each step.
    """

    name = "dreamer"
    title = "DreamerV3"
    agent_name = "DreamerAgent"
    environment_name = "CartPole-v1"
    actions = "discrete or vector"

    num_iterations: int = 10_000
    initial_collect_steps: int = 1_024
    replay_capacity: int = 100_000
    batch_size: int = 16
    gamma: float = 0.997
    final_learning_rate: float | None = None

    learning_rate: float = rate("Learning rate of LaProp.", default=4e-5)
    size: str = field(
        "Size of the networks: 1m, 12m or 25m weights.",
        one_of("1m", "12m", "25m"),
        default="1m",
    )
    sequence_length: int = field(
        "Frames in a sequence to learn from.", integer(2, 2**31 - 1), default=64
    )
    imagination_length: int = field(
        "Steps imagined from each replayed state.", SIZE, default=15
    )
    warm_up: int = field(
        "Updates in which a constant learning rate rises from 0.",
        SIZE_OR_0,
        default=1_000,
    )
    entropy_regularization: float = live(
        "Weight of the policy's entropy in the loss.", FROM_0, default=3e-4
    )
    reconstruction_weight: float = live(
        "Weight of the loss of the predicted observations.", FROM_0, default=1.0
    )
    free_nats: float = live(
        "Divergence below which the model is not trained further.", FROM_0, default=1.0
    )

    def make_networks(self) -> dict[str, Any]:
        """Makes none: the agent makes its own."""
        return {}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        learning_rate = self.scheduled(self.learning_rate)
        if self.warm_up and not callable(self.learning_rate):
            rise = parts.schedule(0.0, self.warm_up, self.learning_rate)
            learning_rate = utils.optimization.Least([rise, learning_rate])
        return {
            **super().agent_arguments(),
            "optimizer": utils.optimization.LaProp(learning_rate),
            "sizes": agents.dreamer.SIZES[self.size],
            "imagination_length": self.imagination_length,
            "gamma": self.gamma,
            "lambda_value": self.lambda_value,
            "entropy_regularization": self.entropy_regularization,
            "reconstruction_weight": self.reconstruction_weight,
            "free_nats": self.free_nats,
        }

    def largest_product(self) -> int:
        """Returns the multiplications of a layer; see `Builder.largest_product`."""
        sizes = agents.dreamer.SIZES[self.size]
        return sizes.deter * sizes.units * self.batch_size * self.sequence_length

    def trained_sequence_length(self) -> int:
        """Returns the frames of a sampled sequence."""
        return self.sequence_length

    def draw_pictures(self, folder: pathlib.Path) -> None:
        """Draws what the model predicts of a replayed sequence; see `Builder`."""
        from tfrl.reports import imagination

        frames: Any = self.loop.draw_for_log()
        # Of the sequences in the batch the one that goes on longest.
        begins = frames.is_first().numpy() | frames.is_boundary().numpy()
        begins[:, 0] = False
        lengths = np.where(begins.any(axis=1), begins.argmax(axis=1), begins.shape[1])
        chosen, length = int(lengths.argmax()), int(lengths.max())
        pairs = self.agent.open_loop(frames, _GIVEN)
        picture = imagination.draw(
            [tuple(x[chosen, :length].numpy() for x in pair) for pair in pairs], _GIVEN
        )
        with files.replacing(folder / run_files.IMAGINED) as new:
            picture.savefig(new, dpi=100, format="png")
