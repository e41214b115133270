"""Rate limiters, which bound the lead of samples and inserts over each other.

A rate limiter has four parameters. Let `inserts`, `samples` and `deletes` count the
operations on the table since its creation or reset, and `difference = inserts *
samples_per_insert - samples`. The rate limiter allows

- a sample if the table holds at least `min_size_to_sample` items and the difference
  stays at or above `min_diff`,
- an insert if the table then holds at most `min_size_to_sample` items, or the
  difference stays at or below `max_diff`.
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
    """A rate limiter with explicit parameters. Subclasses choose the parameters.

    Attributes:
      samples_per_insert: The target number of samples per insert.
      min_size_to_sample: The minimum number of items in the table for sampling.
      min_diff: The smallest difference after a sample.
      max_diff: The largest difference after an insert.
    """

    samples_per_insert: float
    min_size_to_sample: int
    min_diff: float
    max_diff: float

    def __post_init__(self) -> None:
        """Checks the parameters.

        Raises:
          ValueError: If `samples_per_insert` is not a positive finite number,
            `min_size_to_sample` is not a positive integer, or a bound is NaN.
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
                f"RateLimiter: got min_diff {self.min_diff} and max_diff "
                f"{self.max_diff}, expected numbers; pass -inf and inf for no bounds."
            )

    def to_config(self) -> dict[str, Any]:
        """Returns the parameters as a JSON object, for `from_config`.

        Infinities are strings, because JSON cannot represent them as numbers.
        """
        return {
            name: value if math.isfinite(value) else str(value)
            for name, value in dataclasses.asdict(self).items()
        }


def from_config(config: Mapping[str, Any]) -> RateLimiter:
    """Returns the rate limiter that a configuration from `to_config` describes.

    Raises:
      ValueError: If a parameter is missing or invalid.
    """
    names = [field.name for field in dataclasses.fields(RateLimiter)]
    if set(config) != set(names):
        raise ValueError(
            f"config: got the keys {sorted(config)}, expected {sorted(names)}; use the "
            "result of a rate limiter's to_config()."
        )
    return RateLimiter(**config)


class MinSize(RateLimiter):
    """Makes samples wait until there are enough items. Inserts never wait."""

    def __init__(self, min_size_to_sample: int) -> None:
        """Creates the rate limiter.

        Args:
          min_size_to_sample: The minimum number of items for sampling.

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
    """Keeps the average number of samples per item close to a target.

    Until the table holds `min_size_to_sample` items, all inserts and no samples are
    allowed. Then `inserts * samples_per_insert - samples` stays within a range.
    """

    def __init__(
        self,
        samples_per_insert: float,
        min_size_to_sample: int,
        error_buffer: float | tuple[float, float],
    ) -> None:
        """Creates the rate limiter.

        Args:
          samples_per_insert: The average number of samples per item.
          min_size_to_sample: The minimum number of items for sampling.
          error_buffer: The range of the difference, as (min, max) or as the distance of
            both bounds from `samples_per_insert * min_size_to_sample`.

        Raises:
          ValueError: If a number is invalid, or the range of the difference is so
            narrow or so high that inserts and samples would stop forever.
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
    """The rate limiter of `Table.queue`: inserts wait while the table is full."""

    def __init__(self, size: int) -> None:
        """Creates the rate limiter of a queue of at most `size` items."""
        super().__init__(1.0, 1, 0.0, size)


class Stack(RateLimiter):
    """The rate limiter of `Table.stack`: inserts wait while the table is full."""

    def __init__(self, size: int) -> None:
        """Creates the rate limiter of a stack of at most `size` items."""
        super().__init__(1.0, 1, 0.0, size)


class Counts(NamedTuple):
    """The numbers of operations on a table since its creation or reset."""

    inserts: int = 0
    samples: int = 0
    deletes: int = 0


def can_sample(limiter: RateLimiter, counts: Counts, n: int = 1) -> bool:
    """Returns whether a request of `n` samples is allowed."""
    if counts.inserts - counts.deletes < limiter.min_size_to_sample:
        return False
    difference = counts.inserts * limiter.samples_per_insert - counts.samples - n
    return difference >= limiter.min_diff


def can_insert(limiter: RateLimiter, counts: Counts, n: int = 1) -> bool:
    """Returns whether a request of `n` inserts is allowed."""
    inserts = counts.inserts + n
    if inserts - counts.deletes <= limiter.min_size_to_sample:
        return True
    return inserts * limiter.samples_per_insert - counts.samples <= limiter.max_diff


def num_samples(limiter: RateLimiter, counts: Counts, n: int) -> int:
    """Returns the number of `n` samples, drawn one by one, that are allowed.

    The result assumes that the samples do not delete items.
    """
    return _how_many(lambda k: can_sample(limiter, counts, k), n)


def num_inserts(limiter: RateLimiter, counts: Counts, n: int) -> int:
    """Returns the number of `n` inserts, made one by one, that are allowed.

    Evictions make no difference, because a full table stays above the minimum size.
    """
    return _how_many(lambda k: can_insert(limiter, counts, k), n)


def check_satisfiable(
    limiter: RateLimiter, max_size: int, max_times_sampled: int = 0
) -> None:
    """Checks that a table with this rate limiter cannot block forever.

    With `max_times_sampled`, it depends on the order of the samples, too, and some rate
    limiters that can block pass. Those of `SampleToInsertRatio` do not.

    Args:
      limiter: The rate limiter.
      max_size: The maximum number of items of the table.
      max_times_sampled: The number of samples after which an item is deleted; 0 for no
        limit.

    Raises:
      ValueError: If sampling is impossible, or inserts and samples would both stop
        forever at some point.
    """
    if limiter.min_size_to_sample > max_size:
        raise ValueError(
            f"rate_limiter: got min_size_to_sample {limiter.min_size_to_sample}, "
            f"expected at most the table's max_size, {max_size}, because nothing could "
            "ever be sampled; lower the one or raise the other."
        )
    ratio, low, high = limiter.samples_per_insert, limiter.min_diff, limiter.max_diff
    if low == math.inf or _greatest_difference(limiter) - 1 < low:
        raise ValueError(
            f"rate_limiter: got min_diff {low}, expected at most one below the "
            f"{_greatest_difference(limiter)} that inserts reach before max_diff "
            f"({high}) stops them, because nothing could ever be sampled; lower "
            "min_diff or raise max_diff."
        )
    if max_times_sampled > 0 and ratio >= max_times_sampled:
        # Samples delete as many items as inserts add. The table repeatedly falls below
        # its minimum size, where all inserts are allowed.
        return
    least = max(1.0, ratio) if max_times_sampled > 0 else _least_range(limiter)
    if high - low < least:
        raise ValueError(
            f"rate_limiter: got max_diff - min_diff {high - low}, expected at least "
            f"{least} with {ratio} samples_per_insert, because inserts and samples "
            "would both stop forever; widen the range."
        )


def why_inserts_wait(name: str, limiter: RateLimiter, counts: Counts) -> str:
    """Returns a sentence with the reason why an insert has to wait."""
    if can_insert(limiter, counts):
        return f"Table {name!r} waits for nothing: it takes inserts."
    return (
        f"Table {name!r} waits for samplers: writers are ahead of them, and "
        f"{_difference(limiter, counts)}; one more insert would exceed its rate "
        f"limiter's max_diff of {limiter.max_diff}. Inserts go on as soon as more is "
        "sampled, such as when a learner has compiled its program."
    )


def why_samples_wait(name: str, limiter: RateLimiter, counts: Counts) -> str:
    """Returns a sentence with the reason why a sample has to wait."""
    if can_sample(limiter, counts):
        return f"Table {name!r} waits for nothing: it can be sampled."
    size = counts.inserts - counts.deletes
    if size < limiter.min_size_to_sample:
        return (
            f"Table {name!r} waits for items: it holds {size} of the "
            f"{limiter.min_size_to_sample} that its rate limiter's min_size_to_sample "
            "asks for."
        )
    return (
        f"Table {name!r} waits for writers: samplers are ahead of them, and "
        f"{_difference(limiter, counts)}; one more sample would fall below its rate "
        f"limiter's min_diff of {limiter.min_diff}."
    )


def _least_range(limiter: RateLimiter) -> float:
    """Returns the minimum distance of the bounds that keeps the table from blocking.

    If samples do not delete items, inserts and samples that continue forever must
    repeat a cycle. With `p / q` samples per insert, the shortest cycle has `q` inserts
    and `p` samples, which visit `p + q` different multiples of `1 / q`. The bounds may
    lie between such multiples.
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
        # Numbers beyond 2**53 are integers.
        count = math.floor(quotient) if abs(quotient) < 2**53 else quotient
    return max(float(limiter.min_size_to_sample), count) * ratio


def _how_many(allowed: Callable[[int], bool], n: int) -> int:
    """Returns the largest allowed `k <= n`, if all numbers below it are allowed."""
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
    """Checks the range of the difference of a `SampleToInsertRatio`."""
    least = 2 * max(1.0, samples_per_insert)
    if not max_diff - min_diff >= least:
        raise ValueError(
            f"SampleToInsertRatio: error_buffer makes the range [{min_diff}, "
            f"{max_diff}]. The size of error_buffer must be >= max(1.0, "
            "samples_per_insert) as smaller values could completely block samples "
            f"and/or insert calls. Pass a number of at least {least / 2}, or two that "
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
    """Returns `min_size_to_sample` as an `int`; raises an error if it is invalid."""
    try:
        count = operator.index(size)
    except TypeError:
        count = 0
    if count < 1:
        raise ValueError(
            f"min_size_to_sample ({size}) must be a positive integer. Pass 1 to sample "
            "as soon as there is an item."
        )
    return count


def _ratio_message(ratio: float) -> str:
    """Returns an error message for an invalid `samples_per_insert`."""
    return (
        f"samples_per_insert ({ratio}) must be > 0 and finite. Pass the number of "
        "samples per item, or use MinSize, which sets no ratio."
    )


def _difference(limiter: RateLimiter, counts: Counts) -> str:
    """Returns the difference between inserts and samples, as a formula."""
    ratio = limiter.samples_per_insert
    return (
        f"{counts.inserts} inserts x {ratio} samples an insert - {counts.samples} "
        f"samples = {counts.inserts * ratio - counts.samples}"
    )
