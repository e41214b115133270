"""Traces the actions of policies that are called eagerly again and again.

An eager action of a small network takes ten times as long as the same action in a
graph. So a policy that has been called eagerly a few times is traced, and keeps its
trace. A policy of this package is traced only if acting runs no Python code of the
user: the layers of its network are from this package or Keras, and no parameter is a
callable. To trace any other policy, wrap its `action` in `tfrl.utils.common.function`.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.compilation import context, internals
from tfrl.utils import common

# The eager calls before tracing, so that a policy that acts only once is not traced.
_EAGER_CALLS = 8


class TracedAction:
    """Holds the trace of a function that a policy acts by."""

    def __init__(
        self,
        act: Callable[..., Any] | None = None,
        name: str = "action",
        *,
        at_once: bool = False,
    ) -> None:
        """Creates the holder, without a trace.

        Args:
          act: A function of the policy and of the arguments of `call`; None for the
            policy's own `_act`.
          name: The method of the policy that calls it, for warnings.
          at_once: Whether the first call is traced, for any policy. All arguments must
            be tensors or arrays, and the policy may run no Python code that matters.
        """
        self._act, self._name, self._at_once = act or _act, name, at_once
        self._num_calls = 0
        # Whether the policy was found to be pure TensorFlow, which is asked once.
        self._is_pure = False
        self._policy: Any = None
        self._function: Any = None

    def function(self, policy: Any) -> Any:
        """Returns the function as a `tf.function`, which is made only once."""
        if self._policy is None or self._policy() is not policy:
            # There is no function yet, or this policy is a copy and has the function of
            # the original. The reference is weak, to avoid a reference cycle.
            owner: Any = weakref.ref(policy)
            self._policy = owner
            # It is a partial, so that TensorFlow counts the traces of each policy
            # separately.
            self._function = common.function(
                functools.partial(_act_of_owner, self._act, owner)
            )
        return self._function

    def call(self, policy: Any, *arguments: Any) -> Any:
        """Acts eagerly or by the trace.

        Args:
          policy: The policy, always the same one.
          *arguments: Nests of tensors or arrays, or None.
        """
        if not self._may_trace(policy, arguments):
            return self._act(policy, *arguments)
        try:
            return self.function(policy)(*arguments)
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
        # If the arguments are wrong, this raises a clearer error. If it works, only the
        # trace fails.
        step = self._act(policy, *arguments)
        self._num_calls = -1
        warnings.warn(
            f"{type(policy).__name__}.{self._name}: its trace failed, so from now on "
            f"it runs without one, and is several times slower; {failure}",
            UserWarning,
            stacklevel=3,
        )
        return step

    def _may_trace(self, policy: Any, arguments: Any) -> bool:
        """Counts a call; returns whether it may run the trace."""
        if self._num_calls < 0 or tf.config.functions_run_eagerly():
            return False
        if self._at_once:
            return True
        self._num_calls += 1
        if self._num_calls <= _EAGER_CALLS:
            return False
        self._is_pure = self._is_pure or _is_pure_tensorflow(policy)
        if self._is_pure and _are_arrays(arguments):
            return True
        self._num_calls = -1
        return False


def _act(policy: Any, *arguments: Any) -> Any:
    return policy._act(*arguments)


def _act_of_owner(act: Callable[..., Any], owner: Any, *arguments: Any) -> Any:
    return act(owner(), *arguments)


def _is_pure_tensorflow(policy: Any) -> bool:
    is_pure = getattr(policy, "_is_pure_tensorflow", None)
    return is_pure is not None and is_pure()


def has_known_layers(network: Any) -> bool:
    """Whether all layers of `network` are from this package or Keras.

    Such layers can be traced. `keras.layers.Lambda` does not count, since it runs a
    user's function.
    """
    layers = internals.flatten_layers(network)
    return all(
        (
            type(layer).__module__.startswith("keras.")
            or context.is_of_this_package(type(layer))
        )
        and type(layer).__name__ != "Lambda"
        for layer in layers
    )


def _are_arrays(values: Any) -> bool:
    # Every new Python number would cause a new trace.
    return all(
        leaf is None or isinstance(leaf, tf.Tensor | np.ndarray)
        for leaf in tf.nest.flatten(values)
    )
