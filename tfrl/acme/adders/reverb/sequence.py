"""The adder of sequences of fixed length."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import tree

from tfrl.acme.adders.reverb import base
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.replay_service import Client


class EndBehavior(enum.Enum):
    """What a `SequenceAdder` does with the rows at the end of an episode.

    With sequences of 3 rows and a period of 2, an episode of the rows 0 to 5 gives the
    sequences 0 1 2 and 2 3 4, and then:

    - `WRITE`: 3 4 5, the last rows. An episode that is too short gives nothing;
    - `CONTINUE`: 4 5 N, where N is the first row of the next episode;
    - `ZERO_PAD`: 4 5 0, where 0 is a row of zeros;
    - `TRUNCATE`: 4 5, a shorter sequence.
    """

    WRITE = "write_buffer"
    CONTINUE = "continue_to_next_episode"
    ZERO_PAD = "zero_pad_til_next_write"
    TRUNCATE = "write_truncated_buffer"


class SequenceAdder(base.ReverbAdder):
    """Writes sequences of consecutive rows, as `Trajectory` items `[L, ...]`.

    An episode of `T` actions has `T + 1` rows; see `ReverbAdder`. The first sequence is
    written when it has `sequence_length` rows, and the next ones every `period` rows.
    They overlap if the period is less than the length.
    """

    def __init__(
        self,
        client: Client,
        sequence_length: int,
        period: int,
        *,
        delta_encoded: bool = False,
        priority_fns: base.PriorityFnMapping | None = None,
        max_in_flight_items: int | None = 2,
        end_of_episode_behavior: EndBehavior | None = None,
        chunk_length: int | None = None,
        pad_end_of_episode: bool | None = None,
        break_end_of_episode: bool | None = None,
    ) -> None:
        """Creates an adder without connecting to the server.

        Args:
          client: The client of the server.
          sequence_length: The number of rows of a sequence.
          period: The number of rows from one sequence to the next.
          delta_encoded: Not used: steps are not encoded here.
          priority_fns: See `ReverbAdder`.
          max_in_flight_items: See `ReverbAdder`.
          end_of_episode_behavior: What to do with the rows at the end of an episode; by
            default `ZERO_PAD`.
          chunk_length: Not used: steps are not stored in chunks here.
          pad_end_of_episode: Acme's older way to choose: False for `TRUNCATE` instead
            of `ZERO_PAD`.
          break_end_of_episode: Acme's older way to choose: False for `CONTINUE`.

        Raises:
          ValueError: If a number is out of range, or the arguments about ends of
            episodes contradict each other.
        """
        del delta_encoded, chunk_length
        number_checks.check_sizes(sequence_length=sequence_length, period=period)
        super().__init__(
            client, sequence_length, max_in_flight_items, priority_fns=priority_fns
        )
        self._period = period
        self._end_behavior = _end_behavior(
            end_of_episode_behavior, pad_end_of_episode, break_end_of_episode
        )

    def reset(self, timeout_ms: int | None = None) -> None:
        """Drops the rest of a running episode; see `ReverbAdder`.

        With `CONTINUE`, the rows of an episode that has ended are kept.
        """
        if self._end_behavior is not EndBehavior.CONTINUE or self._is_cut:
            super().reset(timeout_ms)
        elif self._open_writer is not None:
            self._open_writer.flush(0, timeout_ms)

    def _after_row(self) -> None:
        if rows_to_next_sequence(
            self._writer.episode_steps, self._max_sequence_length, self._period
        ):
            return
        self._create_sequence(self._max_sequence_length)

    def _after_episode(self) -> None:
        length, rows = self._max_sequence_length, self._writer.episode_steps
        missing = rows_to_next_sequence(rows, length, self._period)
        if not missing or self._end_behavior is EndBehavior.CONTINUE:
            return
        if self._end_behavior is EndBehavior.WRITE:
            if rows >= length:
                self._create_sequence(length)
        elif missing >= length:
            return  # All rows are between two sequences.
        elif self._end_behavior is EndBehavior.TRUNCATE:
            self._create_sequence(length - missing)
        else:
            zeros = tree.map_structure(
                lambda column: base.zeros_like(column[-1].numpy()),
                self._writer.history,
            )
            for _ in range(missing):
                self._writer.append(zeros)
            self._create_sequence(length)

    def _create_sequence(self, length: int) -> None:
        self._create_item(
            base.Trajectory(
                **tree.map_structure(
                    lambda column: column[-length:], self._writer.history
                )
            )
        )


def rows_to_next_sequence(rows: int, sequence_length: int, period: int) -> int:
    """Returns the number of rows that the next sequence still needs.

    Args:
      rows: The number of rows so far. If they complete a sequence, the result is 0.
      sequence_length: The number of rows of a sequence.
      period: The number of rows from one sequence to the next.
    """
    missing = sequence_length - rows
    return missing if missing > 0 else missing % period


def _end_behavior(
    behavior: EndBehavior | None, pads: bool | None, breaks: bool | None
) -> EndBehavior:
    if behavior is not None:
        if not isinstance(behavior, EndBehavior):
            raise ValueError(
                f"end_of_episode_behavior: got {behavior!r}, expected one of "
                f"{', '.join(map(str, EndBehavior))}."
            )
        if pads is not None or breaks is not None:
            raise ValueError(
                f"end_of_episode_behavior: got {behavior} together with "
                "pad_end_of_episode or break_end_of_episode, expected one of both; "
                "leave out the older two."
            )
        return behavior
    if breaks is False:
        if pads:
            raise ValueError(
                "pad_end_of_episode, break_end_of_episode: got True and False, but "
                "sequences that continue in the next episode are not padded; pass "
                "end_of_episode_behavior=EndBehavior.CONTINUE instead of both."
            )
        return EndBehavior.CONTINUE
    return EndBehavior.TRUNCATE if pads is False else EndBehavior.ZERO_PAD
