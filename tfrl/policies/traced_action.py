"""Traces the actions of policies that are called eagerly again and again.

Run operation by operation, an action of a small network takes ten times as long as its
graph. So a policy that is called eagerly a few times is traced, and the trace is kept
with it, provided that nothing of the user's Python takes part in acting: the policy and
its network's layers are ours or Keras's, and nothing is a callable. All others run as
they are; wrap their `action` in `tfrl.utils.common.function`.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.compilation import context, internals
from tfrl.utils import common, seeds

# So that a policy which acts once is not traced for it.
_EAGER_CALLS = 8


class TracedAction:
    """Holds the trace of one policy's `_act`."""

    def __init__(self) -> None:
        """Creates the holder, without a trace."""
        self._num_calls = 0
        self._policy: Any = None
        self._function: Any = None

    def function(self, policy: Any) -> Any:
        """Returns the `tf.function` of `(time_step, policy_state, seed)`."""
        if self._policy is None or self._policy() is not policy:
            # Not yet made, or copied along with the policy. Weakly, or the two would
            # keep each other.
            owner: Any = weakref.ref(policy)
            self._policy = owner

            def act(time_step: Any, policy_state: Any, seed: Any) -> Any:
                return owner()._act(time_step, policy_state, seed)

            self._function = common.function(act)
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
            seed = None if seed is None else seeds.as_seed(seed)
            return self.function(policy)(time_step, policy_state, seed)
        except Exception:
            # It fails eagerly too, with a better message, or else it cannot be traced.
            self._num_calls = -1
            return None


def has_known_layers(network: Any) -> bool:
    """Whether all layers of `network` are ours or Keras's, so that they can be traced.

    Those that run a user's function, such as `keras.layers.Lambda`, are not known.
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
    # Every new number would cause a new trace.
    return all(
        isinstance(leaf, tf.Tensor | np.ndarray) for leaf in tf.nest.flatten(values)
    )
