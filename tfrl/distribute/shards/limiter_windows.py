"""The rate limiters of several replay servers that are used as one table.

A limiter lets `inserts * samples_per_insert - samples` move within a window. Each
server has its own limiter. Writers send messages of several items to one server at
a time, and a learner draws several items from each. If a window is too narrow for both,
a writer can wait at one server for samples while the learner waits at another one for
items. Each table on its own is valid, so only a check of all tables together finds
this.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable

from tfrl.replay_service import rate_limiters, table_info
from tfrl.replay_service.writing.stream import BATCH
from tfrl.utils import number_checks

_LOGGER = logging.getLogger("tfrl.distribute")


def divide(
    limiter: rate_limiters.RateLimiter,
    num_shards: int,
    *,
    items_per_message: int = BATCH,
    samples_per_draw: int = 0,
) -> rate_limiters.RateLimiter:
    """Returns the limiter of each of several shards, given the limiter of the whole.

    The shards hold as many items before sampling as the whole would, and keep the same
    number of samples per insert. Their windows add up to the window of the whole,
    unless a window would be narrower than `check` demands; then a warning gives the
    resulting sum. A queue's or stack's size is divided.

    Args:
      limiter: The limiter of a table that holds all items.
      num_shards: The number of shards.
      items_per_message: The largest number of items that a writer sends together.
      samples_per_draw: The number of items that the learner draws from one shard at a
        time.

    Raises:
      ValueError: If a number is not positive.
    """
    number_checks.check_sizes(
        num_shards=num_shards, items_per_message=items_per_message
    )
    if isinstance(limiter, rate_limiters.Queue | rate_limiters.Stack):
        return type(limiter)(math.ceil(limiter.max_diff / num_shards))
    ratio = limiter.samples_per_insert
    least = max(2 * ratio * items_per_message, 2 * samples_per_draw)
    size = math.ceil(limiter.min_size_to_sample / num_shards)
    before, middle = ratio * limiter.min_size_to_sample, ratio * size
    whole = before - limiter.min_diff, limiter.max_diff - before
    below, above = (max(part / num_shards, least) for part in whole)
    if any(part / num_shards < least for part in whole):
        _LOGGER.warning(
            "rate_limiter: inserts times %g minus samples may stray by -%g and +%g, "
            "but by -%g and +%g over all of %d shards, since each needs room for "
            "messages of %d items and draws of %d. Take fewer shards, or a shorter "
            "pull_period, for a window as narrow as the table's.",
            ratio,
            *whole,
            num_shards * below,
            num_shards * above,
            num_shards,
            items_per_message,
            samples_per_draw,
        )
    return rate_limiters.RateLimiter(ratio, size, middle - below, middle + above)


def check(
    infos: Iterable[table_info.TableInfo],
    *,
    items_per_message: int = BATCH,
    samples_per_draw: int = 0,
) -> None:
    """Checks that shards of a table cannot block writers and learner for ever.

    Args:
      infos: The tables, one for each shard. Tables that delete items after a number of
        samples, such as queues, are not checked: samples make room in them.
      items_per_message: The largest number of items that a writer sends together.
      samples_per_draw: The number of items that the learner draws from one shard at a
        time.

    Raises:
      ValueError: If a window does not have room for a message and a draw.
    """
    infos = list(infos)
    if len(infos) < 2:
        return
    for shard, info in enumerate(infos):
        limiter = info.rate_limiter_info
        width = limiter.max_diff - limiter.min_diff
        ratio = limiter.samples_per_insert
        least = ratio * items_per_message + samples_per_draw
        if not info.max_times_sampled and width < least:
            raise ValueError(
                f"rate_limiter: got {ratio:g} samples per insert within "
                f"[{limiter.min_diff:g}, {limiter.max_diff:g}] for table "
                f"{info.name!r} of shard {shard}, a window of {width:g}; expected at "
                f"least {least:g}, room for a message of {items_per_message} items and "
                f"a draw of {samples_per_draw}, because a writer could wait at one "
                "shard for samples while the learner waits at another for items. Make "
                "the shards' limiter with limiter_windows.divide."
            )
