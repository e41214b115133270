"""Statistics of arrays, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_FUNCTIONS: Mapping[str, Any] = {"max": np.max, "min": np.min, "mean": np.mean}


def of_entries(
    name: str, arrays: Sequence[np.ndarray], percentiles: Sequence[int]
) -> Mapping[str, Any]:
    """Returns the statistics of each entry, by names such as `action[0]_max`.

    Args:
      name: The start of the names.
      arrays: Arrays of one shape; without any, there are no statistics.
      percentiles: The percentiles to compute in addition to the extremes and the mean.
    """
    if not arrays:
        return {}
    results = {key: function(arrays, axis=0) for key, function in _FUNCTIONS.items()}
    for percentile in percentiles:
        results[f"p{percentile}"] = np.percentile(arrays, percentile, axis=0)
    return {
        f"{name}{list(index)}_{key}": result[index]
        for index in np.ndindex(np.shape(arrays[0]))
        for key, result in results.items()
    }
