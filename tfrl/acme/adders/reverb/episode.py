"""The adders of whole episodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import tree

from tfrl.acme.adders.reverb import base
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.replay_service import Client

PaddingFn = Callable[[tuple[int, ...], np.dtype], np.ndarray]


class EpisodeAdder(base.ReverbAdder):
    """Writes each episode as one `Trajectory` item `[T + 1, ...]`.

    `T` is the number of actions; see `ReverbAdder` about the last row.
    """

    _default_padding: PaddingFn | None = None

    def __init__(
        self,
        client: Client,
        max_sequence_length: int,
        delta_encoded: bool = False,
        priority_fns: base.PriorityFnMapping | None = None,
        max_in_flight_items: int | None = 1,
        padding_fn: PaddingFn | None = None,
        chunk_length: int | None = None,
    ) -> None:
        """Creates an adder without connecting to the server.

        Args:
          client: The client of the server.
          max_sequence_length: The number of observations of the longest episode.
          delta_encoded: Not used: steps are not encoded here.
          priority_fns: See `ReverbAdder`.
          max_in_flight_items: See `ReverbAdder`.
          padding_fn: Returns an array of a shape and a dtype, such as `np.zeros`. Rows
            made with this function are added to an episode until it has
            `max_sequence_length` rows; their `start_of_episode` is False. None takes
            the class's default: here, no padding.
          chunk_length: Not used: steps are not stored in chunks here.

        Raises:
          ValueError: If a number is out of range.
        """
        del delta_encoded, chunk_length
        number_checks.check_integer(
            "max_sequence_length",
            max_sequence_length,
            2,
            remedy="an episode with one action has two observations",
        )
        super().__init__(
            client, max_sequence_length, max_in_flight_items, priority_fns=priority_fns
        )
        self._padding_fn = padding_fn or self._default_padding

    def add(self, action: Any, next_timestep: Any, extras: Any = ()) -> None:
        """Adds a step; see `ReverbAdder`.

        Raises:
          ValueError: If the episode has more than `max_sequence_length` observations.
        """
        if (
            self._in_episode
            and self._writer.episode_steps >= self._max_sequence_length - 1
        ):
            raise ValueError(
                f"max_sequence_length: got {self._max_sequence_length}, but this step "
                f"is number {self._writer.episode_steps + 1} of its episode, which "
                f"makes {self._writer.episode_steps + 2} observations; create the "
                "adder with the number of observations of the longest episode."
            )
        super().add(action, next_timestep, extras)

    def _after_episode(self) -> None:
        writer = self._writer
        if self._padding_fn is not None:
            pad = self._padding_fn
            padding = {
                field: np.False_
                if field == "start_of_episode"
                else tree.map_structure(
                    lambda column: pad(column[-1].shape, column[-1].dtype), columns
                )
                for field, columns in writer.history.items()
            }
            while writer.episode_steps < self._max_sequence_length:
                writer.append(padding)
        self._create_item(
            base.Trajectory(
                **tree.map_structure(lambda column: column[:], writer.history)
            )
        )


class PaddedEpisodeAdder(EpisodeAdder):
    """An `EpisodeAdder` that pads with zeros, so that all items have equal shapes."""

    _default_padding: Any = np.zeros
