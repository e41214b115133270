"""How far samples and inserts of a table may run ahead of each other.

A limiter is four numbers. With `inserts`, `samples` and `deletes` the operations on the
table since it was made or reset, and `difference = inserts * samples_per_insert -
samples`, it lets

- a sample through if the table holds at least `min_size_to_sample` items and the
  difference stays at or above `min_diff`,
- an insert through if the table holds at most `min_size_to_sample` items after it, or
  the difference stays at or below `max_diff`.
"""

from __future__ import annotations

import dataclasses
import fractions
import logging
import math
import operator
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

_LOGGER = logging.getLogger("tfrl.replay_service")


@dataclasses.dataclass(frozen=True)
class RateLimiter:
    """A limiter by its four numbers; the classes below choose them.

    Attributes:
      samples_per_insert: How many samples an insert pays for.
      min_size_to_sample: The size below which nothing is sampled.
      min_diff: The least difference that a sample may leave.
      max_diff: The greatest difference that an insert may leave.
    """

    samples_per_insert: float
    min_size_to_sample: int
    min_diff: float
    max_diff: float

    def __post_init__(self) -> None:
        """Checks the numbers.

        Raises:
          ValueError: If `samples_per_insert` is not a positive number,
            `min_size_to_sample` not a positive integer, or a difference is NaN.
        """
        for name in ("samples_per_insert", "min_diff", "max_diff"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if not 0 < self.samples_per_insert < math.inf:
            raise ValueError(_ratio_message(self.samples_per_insert))
        object.__setattr__(
            self, "min_size_to_sample", _checked_size(self.min_size_to_sample)
        )
        if math.isnan(self.min_diff) or math.isnan(self.max_diff):
            raise ValueError(
                f"RateLimiter: min_diff is {self.min_diff} and max_diff "
                f"{self.max_diff}; expected numbers. Give -inf and inf for no bounds."
            )

    def to_config(self) -> dict[str, Any]:
        """Returns what `from_config` makes a limiter of the same numbers of.

        Infinities are strings in it, because JSON has none.
        """
        return {
            name: value if math.isfinite(value) else str(value)
            for name, value in dataclasses.asdict(self).items()
        }


def from_config(config: Mapping[str, Any]) -> RateLimiter:
    """Returns the limiter whose `to_config` gave `config`.

    Raises:
      ValueError: If a number is missing or is none.
    """
    names = [field.name for field in dataclasses.fields(RateLimiter)]
    if set(config) != set(names):
        raise ValueError(
            f"rate_limiters.from_config: the configuration has {sorted(config)}; "
            f"expected {sorted(names)}. Take it from a limiter's to_config()."
        )
    return RateLimiter(**config)


class MinSize(RateLimiter):
    """Lets samples wait until there are enough items, and inserts never."""

    def __init__(self, min_size_to_sample: int) -> None:
        """Creates the limiter.

        Args:
          min_size_to_sample: How many items there must be.

        Raises:
          ValueError: If `min_size_to_sample` is not a positive integer.
        """
        super().__init__(
            samples_per_insert=1.0,
            min_size_to_sample=min_size_to_sample,
            min_diff=-sys.float_info.max,
            max_diff=sys.float_info.max,
        )


class SampleToInsertRatio(RateLimiter):
    """Keeps the samples of an item close to a number.

    Until the table holds `min_size_to_sample` items it lets all inserts through and no
    samples; then `inserts * samples_per_insert - samples` stays within a range.
    """

    def __init__(
        self,
        samples_per_insert: float,
        min_size_to_sample: int,
        error_buffer: float | tuple[float, float],
    ) -> None:
        """Creates the limiter.

        Args:
          samples_per_insert: How often an item is to be sampled on average.
          min_size_to_sample: How many items there must be.
          error_buffer: The range; a number is how far it goes to either side of
            `samples_per_insert * min_size_to_sample`.

        Raises:
          ValueError: If a number is out of its range, or if the range of the difference
            is so small, or so high, that everything would come to a stop.
        """
        if not 0 < samples_per_insert < math.inf:
            raise ValueError(_ratio_message(samples_per_insert))
        min_size_to_sample = _checked_size(min_size_to_sample)
        middle = samples_per_insert * min_size_to_sample
        if isinstance(error_buffer, (tuple, list)):
            min_diff, max_diff = error_buffer
        else:
            min_diff, max_diff = middle - error_buffer, middle + error_buffer
        _check_range(min_diff, max_diff, samples_per_insert, middle)
        super().__init__(samples_per_insert, min_size_to_sample, min_diff, max_diff)


class Queue(RateLimiter):
    """The limiter of `Table.queue`: an item is sampled once, inserts wait for room."""

    def __init__(self, size: int) -> None:
        """Creates the limiter of a queue of at most `size` items."""
        super().__init__(1.0, 1, 0.0, size)


class Stack(RateLimiter):
    """The limiter of `Table.stack`: an item is sampled once, inserts wait for room."""

    def __init__(self, size: int) -> None:
        """Creates the limiter of a stack of at most `size` items."""
        super().__init__(1.0, 1, 0.0, size)


class Counts(NamedTuple):
    """How many operations a table has seen since it was made or reset."""

    inserts: int = 0
    samples: int = 0
    deletes: int = 0


def can_sample(limiter: RateLimiter, counts: Counts, n: int = 1) -> bool:
    """Returns whether `n` samples would be let through at once."""
    if counts.inserts - counts.deletes < limiter.min_size_to_sample:
        return False
    difference = counts.inserts * limiter.samples_per_insert - counts.samples - n
    return difference >= limiter.min_diff


def can_insert(limiter: RateLimiter, counts: Counts, n: int = 1) -> bool:
    """Returns whether `n` inserts would be let through at once."""
    inserts = counts.inserts + n
    if inserts - counts.deletes <= limiter.min_size_to_sample:
        return True
    return inserts * limiter.samples_per_insert - counts.samples <= limiter.max_diff


def num_samples(limiter: RateLimiter, counts: Counts, n: int) -> int:
    """Returns how many of `n` samples, one after another, are let through.

    The samples are taken not to delete anything.
    """
    return _how_many(lambda k: can_sample(limiter, counts, k), n)


def num_inserts(limiter: RateLimiter, counts: Counts, n: int) -> int:
    """Returns how many of `n` inserts, one after another, are let through.

    What they evict changes nothing: a full table is never below the minimum again.
    """
    return _how_many(lambda k: can_insert(limiter, counts, k), n)


def check_satisfiable(
    limiter: RateLimiter, max_size: int, max_times_sampled: int = 0
) -> None:
    """Checks that a table with this limiter does not come to a stop for certain.

    Args:
      limiter: The limiter.
      max_size: How many items the table holds at most.
      max_times_sampled: After how many samples an item is deleted; 0 for never.

    Raises:
      ValueError: If nothing could ever be sampled, or if inserts and samples must both
        stop for good at some time.
    """
    if limiter.min_size_to_sample > max_size:
        raise ValueError(
            f"rate_limiter: min_size_to_sample is {limiter.min_size_to_sample}; "
            f"expected at most the table's max_size, {max_size}, because nothing could "
            "ever be sampled. Lower the one or raise the other."
        )
    ratio, low, high = limiter.samples_per_insert, limiter.min_diff, limiter.max_diff
    if low == math.inf or _greatest_difference(limiter) - 1 < low:
        raise ValueError(
            f"rate_limiter: min_diff is {low}; expected at most one below the "
            f"{_greatest_difference(limiter)} that inserts reach before max_diff "
            f"({high}) stops them, because nothing could ever be sampled. Lower "
            "min_diff or raise max_diff."
        )
    if max_times_sampled > 0 and ratio >= max_times_sampled:
        # Samples delete as many items as come in: the table falls below its minimum
        # again and again, where inserts need no permission.
        return
    least = max(1.0, ratio) if max_times_sampled > 0 else _least_range(limiter)
    if high - low < least:
        raise ValueError(
            f"rate_limiter: max_diff - min_diff is {high - low}; expected at least "
            f"{least} with {ratio} samples_per_insert, because inserts and samples "
            "would both stop for good. Widen the range."
        )


def _least_range(limiter: RateLimiter) -> float:
    """Returns how far apart the bounds must be for inserts and samples to go on.

    Where items are not deleted by samples, inserts and samples that go on for good
    repeat themselves. With `p / q` samples an insert, `q` inserts and `p` samples bring
    the difference back to where it was, no fewer do, and so they visit `p + q`
    different multiples of `1 / q`. The bounds may lie beside such multiples.
    """
    ratio, low, high = limiter.samples_per_insert, limiter.min_diff, limiter.max_diff
    fraction = fractions.Fraction(ratio).limit_denominator(1000)
    p, q = fraction.numerator, fraction.denominator
    if not math.isfinite(high - low) or abs(ratio - p / q) > 1e-12:
        return max(1.0, ratio)
    inside = math.floor(high * q + 1e-9) - math.ceil(low * q - 1e-9)
    return (p + q - 1 - inside) / q + high - low


def _greatest_difference(limiter: RateLimiter) -> float:
    """Returns the difference at which inserts stop if nothing is sampled."""
    ratio = limiter.samples_per_insert
    if math.isinf(limiter.max_diff):
        count = math.inf if limiter.max_diff > 0 else 0.0
    else:
        quotient = limiter.max_diff / ratio
        # Beyond 2**53 every number is whole.
        count = math.floor(quotient) if abs(quotient) < 2**53 else quotient
    return max(float(limiter.min_size_to_sample), count) * ratio


def _how_many(allowed: Callable[[int], bool], n: int) -> int:
    """Returns the largest `k <= n` that is allowed, as every smaller one then is."""
    if n < 1 or not allowed(1):
        return 0
    if allowed(n):
        return n
    low, high = 1, n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


def _check_range(
    min_diff: float, max_diff: float, samples_per_insert: float, middle: float
) -> None:
    """Checks the range of a `SampleToInsertRatio`."""
    least = 2 * max(1.0, samples_per_insert)
    if not max_diff - min_diff >= least:
        raise ValueError(
            f"SampleToInsertRatio: error_buffer makes the range [{min_diff}, "
            f"{max_diff}]. The size of error_buffer must be >= max(1.0, "
            "samples_per_insert) as smaller values could completely block samples "
            f"and/or insert calls. Give a number of at least {least / 2}, or two that "
            f"are {least} apart."
        )
    if min_diff > middle:
        raise ValueError(
            f"SampleToInsertRatio: error_buffer makes the range [{min_diff}, "
            f"{max_diff}]. The range covered by error_buffer is above "
            f"samples_per_insert * min_size_to_sample ({middle}). This would result "
            "in a deadlock as soon as min_size_to_sample items have been inserted. "
            "Lower its first number."
        )
    if max_diff < middle:
        _LOGGER.warning(
            "SampleToInsertRatio: error_buffer makes the range [%s, %s]. The range "
            "covered by error_buffer is below samples_per_insert * min_size_to_sample "
            "(%s). If the sampler cannot sample concurrently, this will result in a "
            "deadlock as soon as min_size_to_sample items have been inserted. Raise "
            "its second number.",
            min_diff,
            max_diff,
            middle,
        )


def _checked_size(size: Any) -> int:
    """Returns `min_size_to_sample` as an `int`."""
    try:
        count = operator.index(size)
    except TypeError:
        count = 0
    if count < 1:
        raise ValueError(
            f"min_size_to_sample ({size}) must be a positive integer. Give 1 to sample "
            "as soon as there is an item."
        )
    return count


def _ratio_message(ratio: float) -> str:
    """Returns what is wrong with a `samples_per_insert`."""
    return (
        f"samples_per_insert ({ratio}) must be > 0 and finite. Give the number of "
        "times that an item is to be sampled; MinSize sets no ratio."
    )
