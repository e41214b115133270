"""Saves a replay server's table with a `tf.train.Checkpoint`."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any, Protocol

import tensorflow as tf

_logger = logging.getLogger(__name__)


class CheckpointedClient(Protocol):
    """The part of a client that `Contents` uses."""

    def checkpoint(self) -> Any:
        """Makes the server write a checkpoint; returns its path."""


class Contents(tf.train.experimental.PythonState):
    """Saves a Reverb server's items with each `tf.train.Checkpoint`.

    Whenever a `tf.train.Checkpoint` is saved, the server writes its own checkpoint, and
    the `tf.train.Checkpoint` holds the path of the server's checkpoint.

    Attributes:
      path: The path of the last checkpoint, as the client has returned it; None before
        the first.
    """

    def __init__(
        self, client: CheckpointedClient, num_items: Callable[[], int]
    ) -> None:
        """Stores the client and the function that counts items.

        Args:
          client: The client of the server.
          num_items: Returns the number of items in the table.
        """
        self._client = client
        self._num_items = num_items
        self.path: Any = None

    def serialize(self) -> str:
        """Makes the server write a checkpoint; returns its path and number of items."""
        # Items on their way to the server are left out. Waiting for them could take
        # forever: the rate limiter may block them, since nobody samples now.
        self.path = self._client.checkpoint()
        return json.dumps({"path": str(self.path), "items": self._num_items()})

    def deserialize(self, string_value: bytes) -> None:
        """Logs a warning if the table is empty, but was not when it was saved."""
        saved = json.loads(string_value)
        if saved["items"] and not self._num_items():
            _logger.warning(
                "The replay server's table is empty, but when this checkpoint was made "
                "it held %d items, which are in %s. A server loads them when it is "
                "started with the DefaultCheckpointer of the folder above.",
                saved["items"],
                saved["path"],
            )
