"""Base classes of modules with an abstract `__call__`, which tfrl takes as networks."""

from __future__ import annotations

import abc
import sys
from typing import Any

import tensorflow as tf


class _Metaclass(abc.ABCMeta, type(tf.Module)):  # type: ignore[misc]
    """Of a `tf.Module` with abstract methods."""


class Module(tf.Module, metaclass=_Metaclass):
    """A module that returns a nest of tensors."""

    @abc.abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns a nest of tensors `[B, ...]` for such nests."""


class DistributionalModule(tf.Module, metaclass=_Metaclass):
    """A module that returns a distribution."""

    @abc.abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns a distribution for nests of tensors `[B, ...]`."""


class RNNCore(tf.Module, metaclass=_Metaclass):
    """A recurrent module, which can also be applied to sequences at once.

    If Sonnet is imported before a subclass is defined, the subclass is one of Sonnet's
    RNNCore, too, so `snt.DeepRNN` gives it its state.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        sonnet = sys.modules.get("sonnet")
        if sonnet is not None:
            sonnet.RNNCore.register(cls)

    @abc.abstractmethod
    def __call__(self, inputs: Any, prev_state: Any) -> tuple[Any, Any]:
        """Returns outputs and the next state for inputs `[B, ...]` and a state."""

    @abc.abstractmethod
    def initial_state(self, batch_size: Any, **kwargs: Any) -> Any:
        """Returns the state at the beginning of an episode, `[B, ...]`."""

    @abc.abstractmethod
    def unroll(self, inputs: Any, state: Any, sequence_length: int) -> tuple[Any, Any]:
        """Returns outputs `[T, B, ...]` and the last state for inputs `[T, B, ...]`."""
