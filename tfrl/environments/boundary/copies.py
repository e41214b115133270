"""`NestCopier` copies values of other libraries' environments into new arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import tree

from tfrl.environments.boundary import leaf_checks
from tfrl.specs import array_spec, matching


class NestCopier:
    """Copies one field of a time step, such as its observation.

    A copy is necessary, because an environment may change its arrays in place, and the
    caller keeps the result. A number is cast to the dtype of its spec if this dtype can
    hold it. Shapes, NaN and infinity are left to the check of the whole time step.
    """

    def __init__(self, name: str, field: str, spec: Any):
        """Prepares the copies.

        Args:
          name: The name of the environment, for messages.
          field: The name of the field, such as "observation".
          spec: The nest of `ArraySpec`s of the field.
        """
        self._name = name
        self._field = field
        self._spec = spec
        self._leaves = [
            (matching.join(field, *path), leaf.dtype)
            for path, leaf in tree.flatten_with_path(spec)
        ]
        # The dtype of a single array; None for a nest.
        self._dtype = spec.dtype if isinstance(spec, array_spec.ArraySpec) else None

    def __call__(self, value: Any) -> Any:
        """Returns copies of the arrays in `value`, as a nest like the spec.

        Raises:
          ValueError: If the structure differs, or a dtype cannot hold a number; the
            message names the environment and the field.
        """
        if type(value) is np.ndarray and value.dtype is self._dtype:
            return value.copy()
        try:
            if self._dtype is not None:
                return leaf_checks.copy_as(self._field, value, self._dtype)
            values = leaf_checks.leaves(self._field, value, self._spec)
            copies = [
                leaf_checks.copy_as(where, leaf, dtype)
                for leaf, (where, dtype) in zip(values, self._leaves, strict=True)
            ]
        except leaf_checks.BrokenSpecError as error:
            raise ValueError(
                f"{error.where}: got {error.problem} from environment {self._name}; "
                "correct the results of its reset and its step, or its spec (its "
                "space)."
            ) from None
        return tree.unflatten_as(self._spec, copies)
