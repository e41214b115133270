"""Messages for clients that wait for a table's rate limiter."""

from __future__ import annotations

from tfrl.replay_service import rate_limiters


def to_insert(
    name: str, limiter: rate_limiters.RateLimiter, counts: rate_limiters.Counts
) -> str:
    """Returns a sentence with the reason why an insert has to wait."""
    if rate_limiters.can_insert(limiter, counts):
        return f"Table {name!r} waits for nothing: it takes inserts."
    return (
        f"Table {name!r} waits for samplers: writers are ahead of them, and "
        f"{_difference(limiter, counts)}; one more insert would exceed its rate "
        f"limiter's max_diff of {limiter.max_diff}. Inserts go on as soon as more is "
        "sampled, such as when a learner has compiled its program."
    )


def to_sample(
    name: str, limiter: rate_limiters.RateLimiter, counts: rate_limiters.Counts
) -> str:
    """Returns a sentence with the reason why a sample has to wait."""
    if rate_limiters.can_sample(limiter, counts):
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


def _difference(
    limiter: rate_limiters.RateLimiter, counts: rate_limiters.Counts
) -> str:
    """Returns the difference between inserts and samples, as a formula."""
    ratio = limiter.samples_per_insert
    return (
        f"{counts.inserts} inserts x {ratio} samples an insert - {counts.samples} "
        f"samples = {counts.inserts * ratio - counts.samples}"
    )
