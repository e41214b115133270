"""Tables by which processes of a run send messages to each other; no TensorFlow."""

from __future__ import annotations

from typing import Any

from tfrl import replay_service


def make_table(
    name: str, max_size: int, max_times_sampled: int = 1, signature: Any = None
) -> replay_service.Table:
    """Makes a table whose messages come in their order.

    Args:
      name: The name of the table.
      max_size: How many messages wait; the oldest give way to new ones.
      max_times_sampled: After how many readings a message goes; 0 keeps it.
      signature: The nest of specs of a message; None takes any.
    """
    return replay_service.Table(
        name,
        sampler=replay_service.selectors.Fifo(),
        remover=replay_service.selectors.Fifo(),
        max_size=max_size,
        max_times_sampled=max_times_sampled,
        rate_limiter=replay_service.rate_limiters.MinSize(1),
        signature=signature,
    )
