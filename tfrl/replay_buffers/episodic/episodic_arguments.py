"""Checks of an episodic buffer's arguments: episode functions and ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def scalar(name: str, flag: Any) -> tf.Tensor:
    """Checks that `flag`, the result of the function `name`, is a bool scalar."""
    flag = tf.convert_to_tensor(flag, tf.bool)
    if flag.shape.rank != 0:
        raise ValueError(
            f"{name}: returned shape {flag.shape} for a sequence, expected a scalar, "
            "since a sequence belongs to one episode. Reduce over the frames."
        )
    return flag


def episode_fn(
    name: str, fn: Callable[[Any], Any] | None, method: str
) -> Callable[[Any], Any]:
    """Returns `fn`; if it is None, a function that calls `method` of the items."""

    def from_items(items: Any) -> Any:
        if not callable(getattr(items, method, None)):
            raise TypeError(
                f"{name}: the items have no method {method}(), which is asked by "
                f"default; they are a {type(items).__name__}. Give the buffer a {name}."
            )
        return getattr(items, method)()

    if fn is not None and not callable(fn):
        raise TypeError(f"{name}: got {fn!r}, expected a function or None.")
    return fn or from_items


def checked_ids(episode_ids: Any, rank: int) -> tf.Tensor:
    """Returns episode ids as an int64 tensor of rank 0 or 1, or raises a ValueError."""
    wanted = "a vector" if rank else "a scalar"
    if episode_ids is None:
        raise ValueError(
            f"episode_ids: got None, expected {wanted}. Begin with create_episode_ids, "
            "or use StatefulEpisodicReplayBuffer, which keeps them."
        )
    episode_ids = tf.convert_to_tensor(episode_ids, tf.int64)
    if episode_ids.shape.rank != rank:
        raise ValueError(
            f"episode_ids: got shape {episode_ids.shape}, expected {wanted}. Begin "
            f"with create_episode_ids({'num_episodes' if rank else ''})."
        )
    return episode_ids
