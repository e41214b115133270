"""`PolicyStep`, a policy's action, its next state and further information."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, cast

from typing_extensions import TypeVar

# The types of fields, for type checkers.
ActionT = TypeVar("ActionT", default=Any, covariant=True)
StateT = TypeVar("StateT", default=Any, covariant=True)
InfoT = TypeVar("InfoT", default=Any, covariant=True)

# A nest of tensors, arrays or specs; for `policy.distribution` also of distributions.
ActionType = Any


class _Fields(NamedTuple, Generic[ActionT, StateT, InfoT]):
    action: ActionT = cast(Any, ())
    state: StateT = cast(Any, ())
    info: InfoT = cast(Any, ())


class PolicyStep(_Fields[ActionT, StateT, InfoT]):
    """The result of `policy.action()` and `policy.distribution()`.

    Annotations can name the types of the fields, in their order. Types that are not
    named are `Any`: `PolicyStep`, or `PolicyStep[np.ndarray]`.

    Attributes:
      action: A nest of actions, or of action distributions, `[B, ...]`.
      state: The policy state to pass to the next call; `()` for stateless policies.
      info: Additional data about the action, such as its log-probability; `()` if
        there is none.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # Arguments may have other types than the fields.

        def __new__(  # noqa: D102
            cls, action: ActionType = (), state: Any = (), info: Any = ()
        ) -> Self: ...

        def _replace(
            self, *, action: ActionType = ..., state: Any = ..., info: Any = ...
        ) -> Self: ...

    def replace(self, **kwargs: Any) -> PolicyStep:
        """Returns a copy with the given fields replaced."""
        return self._replace(**kwargs)


class CommonFields:
    """Names of the `PolicyStep.info` fields that several modules use."""

    LOG_PROBABILITY = "log_probability"


class PolicyInfo(NamedTuple):
    """The `PolicyStep.info` of a policy that only emits log-probabilities."""

    log_probability: Any


def set_log_probability(info: Any, log_probability: Any) -> Any:
    """Returns `info` with the field `log_probability` set.

    An empty `info` (`()` or None) becomes a `PolicyInfo`. A mapping is copied, not
    changed in place. A named tuple must have the field. Any other `info` is returned
    unchanged.
    """
    if info is None or (isinstance(info, tuple) and not info):
        return PolicyInfo(log_probability=log_probability)
    if isinstance(info, Mapping):
        # The copy keeps the mapping's own type (OrderedDict, defaultdict).
        changed: Any = copy.copy(info)
        changed[CommonFields.LOG_PROBABILITY] = log_probability
        return changed
    if hasattr(info, "_replace"):
        return info._replace(**{CommonFields.LOG_PROBABILITY: log_probability})
    return info


def get_log_probability(info: Any, default_log_probability: Any = None) -> Any:
    """Returns the field `log_probability` of `info`, or the default if it is missing.

    If `info` is neither a mapping nor a named tuple, returns None.
    """
    if isinstance(info, Mapping):
        return info.get(CommonFields.LOG_PROBABILITY, default_log_probability)
    if hasattr(info, "_fields"):
        return getattr(info, CommonFields.LOG_PROBABILITY, default_log_probability)
    return None
