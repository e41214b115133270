"""The contents of a replay server's table in a `tf.train.Checkpoint`."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import tensorflow as tf

if TYPE_CHECKING:
    from tfrl.replay_buffers import reverb_replay_buffer

_logger = logging.getLogger(__name__)


class Contents(tf.train.experimental.PythonState):
    """The contents in a checkpoint: the path of one that the server makes."""

    def __init__(self, buffer: reverb_replay_buffer.ReverbReplayBuffer) -> None:
        self._buffer = buffer

    def serialize(self) -> str:
        # What is on its way is left out: waiting for it, a rate limiter may never let
        # it in, since nobody samples now.
        path = str(self._buffer.py_client.checkpoint())
        return json.dumps({"path": path, "items": self._buffer.num_frames()})

    def deserialize(self, string_value: bytes) -> None:
        saved = json.loads(string_value)
        if saved["items"] and not self._buffer.num_frames():
            _logger.warning(
                "The replay server's table is empty, but when this checkpoint was made "
                "it held %d items, which are in %s. A server loads them when it is "
                "started with the DefaultCheckpointer of the folder above.",
                saved["items"],
                saved["path"],
            )
