"""Describes a table to clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfrl.replay_service import item_selectors, rate_limiters


def table_info(
    options: Mapping[str, Any],
    limiter: rate_limiters.RateLimiter,
    counts: rate_limiters.Counts,
    **sizes: float,
) -> dict[str, Any]:
    """Returns the fields of a Reverb `TableInfo` as a JSON object.

    Args:
      options: The options of the table; see `EngineTable`.
      limiter: The rate limiter of the table.
      counts: The counts of the rate limiter.
      **sizes: The current size, the total weight, and the numbers of episodes and
        samples.
    """
    return {
        "name": str(options["name"]),
        "sampler_options": _options(options["sampler"]),
        "remover_options": _options(options["remover"]),
        "max_size": int(options["max_size"]),
        "max_times_sampled": int(options.get("max_times_sampled", 0)),
        "rate_limiter_info": {
            **limiter.to_config(),
            "insert_stats": {"completed": counts.inserts},
            "sample_stats": {"completed": counts.samples},
        },
        "signature": options.get("signature"),
        "num_deleted_items": counts.deletes,
        **sizes,
    }


def _options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a selector's options in the form of a `TableInfo`."""
    return item_selectors.from_config(config).options()
