"""`ActionChecker` checks actions of arrays; in graphs, use `action_tensors`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.environments.boundary import leaf_checks
from tfrl.specs import array_spec


class ActionChecker:
    """Checks the actions that an environment gets against its action spec.

    Integers and floats of any size are cast to the dtypes of their specs. Floats must
    be finite in float32. Bounds are not checked, because many environments clip actions
    themselves. A batch of one takes a number without the batch, as in TF-Agents.
    """

    def __init__(self, name: str, spec: Any, outer_shape: tuple[int, ...] = ()):
        """Prepares the checks.

        Args:
          name: The name of the environment, for messages.
          spec: A nest of `ArraySpec`s; tensor specs are converted.
          outer_shape: The dimensions in front of the specs' shapes, such as `(B,)`.
        """
        self._name = name
        self._spec = spec = array_spec.of_nest(spec)
        self._is_single = isinstance(spec, array_spec.ArraySpec)
        self._checks = [
            leaf_checks.make(
                ("action", *path),
                leaf,
                outer_shape,
                leaf_checks.keeps_kind,
                must_be_finite=True,
                takes_number=not leaf.shape,
            )
            for path, leaf in tree.flatten_with_path(spec)
        ]

    @classmethod
    def of(cls, environment: py_environment.PyEnvironment) -> Self:
        """Returns the checker for an environment, batched or not."""
        size = environment.batch_size
        return cls(
            py_environment.environment_name(environment),
            environment.action_spec(),
            () if size is None else (size,),
        )

    def __call__(self, action: Any) -> list[np.ndarray]:
        """Returns the arrays of `action`, in the order and dtypes of the specs.

        Raises:
          ValueError: If the structure or a shape differs, or a number is not finite.
            The message names the environment and the field.
          TypeError: If a dtype is of another kind, such as floats for integers.
        """
        try:
            if self._is_single:
                return [self._checks[0](action)]
            return leaf_checks.flatten("action", action, self._spec, self._checks)
        except leaf_checks.BrokenSpecError as error:
            raise self._explain(error) from None

    def check_flat(self, flat: Sequence[np.ndarray]) -> None:
        """Checks arrays in the order of the specs; for errors see `__call__`."""
        if self._is_single:
            self(flat[0])
            return
        try:
            for check, array in zip(self._checks, flat, strict=True):
                check(array)
        except leaf_checks.BrokenSpecError as error:
            raise self._explain(error) from None

    def conform(self, action: Any) -> Any:
        """Returns `action` as a nest like the spec; for errors see `__call__`."""
        if self._is_single:
            return self(action)[0]
        return tree.unflatten_as(self._spec, self(action))

    def _explain(self, error: leaf_checks.BrokenSpecError) -> Exception:
        is_dtype = isinstance(error, leaf_checks.WrongDtypeError)
        return (TypeError if is_dtype else ValueError)(
            f"{error.where}: got {error.problem} for environment {self._name}; "
            f"{_remedy(error.problem)}."
        )


def leaves(action: Any, spec: Any) -> list[Any]:
    """Returns the flat list of the values in `action`, one for each leaf of `spec`.

    Args:
      action: A nest like `spec`.
      spec: A nest of array or tensor specs.

    Raises:
      ValueError: If the structure differs.
    """
    try:
        return tree.flatten_up_to(spec, action)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"action: got {action!r}, expected the structure of the action spec {spec} "
            f"({error}); pack the actions like the spec."
        ) from None


def can_cast(dtype: np.dtype[Any], to: np.dtype[Any]) -> bool:
    """Whether actions of `dtype` may be cast to `to`; integers of any size may."""
    if dtype.kind in "iu" and to.kind in "iu":
        return True
    return np.can_cast(dtype, to, "same_kind")


def _remedy(problem: str) -> str:
    if problem.endswith("a finite number,"):
        return (
            "correct the policy, whose network may have diverged: lower its learning "
            "rate, or clip its gradients"
        )
    if "expected an array of dtype" in problem:
        return "cast the action"
    return "take actions that follow the action spec, a batch in front if there is one"
