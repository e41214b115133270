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
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.compilation import context, internals
from tfrl.utils import common
from tfrl.utils.random_numbers import seeds

# The eager calls before tracing, so that a policy that acts only once is not traced.
_EAGER_CALLS = 8


class TracedAction:
    """Holds the trace of one policy's `_act`."""

    def __init__(self) -> None:
        """Creates the holder, without a trace."""
        self._num_calls = 0
        self._policy: Any = None
        self._function: Any = None

    def function(self, policy: Any) -> Any:
        """Returns `policy._act` as a `tf.function`, which is made only once."""
        if self._policy is None or self._policy() is not policy:
            # There is no function yet, or this policy is a copy and has the function of
            # the original. The reference is weak, to avoid a reference cycle.
            owner: Any = weakref.ref(policy)
            self._policy = owner
            # It is a partial, so that TensorFlow counts the traces of each policy
            # separately.
            self._function = common.function(functools.partial(_act, owner))
        return self._function

    def call(self, policy: Any, time_step: Any, policy_state: Any, seed: Any) -> Any:
        """Returns the step of an eager call; None if the policy must run eagerly."""
        if self._num_calls < 0 or tf.config.functions_run_eagerly():
            return None
        self._num_calls += 1
        if self._num_calls <= _EAGER_CALLS:
            return None
        if not (
            policy._is_pure_tensorflow() and _are_arrays((time_step, policy_state))
        ):
            self._num_calls = -1
            return None
        try:
            traced_seed = None if seed is None else seeds.as_seed(seed)
            return self.function(policy)(time_step, policy_state, traced_seed)
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
        # If the arguments are wrong, this raises a clearer error. If it works, only the
        # trace fails.
        step = policy._act(time_step, policy_state, seed)
        self._num_calls = -1
        warnings.warn(
            f"{type(policy).__name__}.action: its trace failed, so from now on it runs "
            f"without one, and is several times slower; {failure}",
            UserWarning,
            stacklevel=3,
        )
        return step


def _act(policy: Any, time_step: Any, policy_state: Any, seed: Any) -> Any:
    return policy()._act(time_step, policy_state, seed)


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
        isinstance(leaf, tf.Tensor | np.ndarray) for leaf in tf.nest.flatten(values)
    )
