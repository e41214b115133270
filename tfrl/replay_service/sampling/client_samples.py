"""Draws samples for `Client.sample`, through a pool of connections."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfrl.replay_service.replay_sample import SampleInfo
from tfrl.replay_service.sampling import sampler
from tfrl.replay_service.sampling.sampler_session import SamplerSession
from tfrl.replay_service.transport import idle_pool

_AHEAD = 64  # Maximum number of samples that are drawn ahead of their use.


class ClientSamples:
    """Draws samples. All threads may use it concurrently."""

    def __init__(self, server_address: str, access: Mapping[str, Any]):
        """Creates an empty pool.

        Args:
          server_address: "host:port".
          access: The client's options for `connection.connect`.
        """
        self._server_address = server_address
        self._access = access
        self._idle = idle_pool.IdlePool(SamplerSession.close)

    def draw(
        self, table: str, num_samples: int
    ) -> Iterator[tuple[SampleInfo, list[np.ndarray]]]:
        """Yields sampled items of a table, or nothing if `num_samples` is negative.

        Raises:
          ReplayUnavailable: If no server answers.
        """
        if num_samples < 0:
            return
        with self._stream(table, num_samples, _AHEAD) as stream:
            while num_samples:
                for item in stream.next_items(num_samples) or ():
                    num_samples -= 1
                    yield item

    def draw_batch(
        self, table: str, batch_size: int
    ) -> tuple[SampleInfo, list[np.ndarray]]:
        """Returns the infos of sampled items, `[B]`, and their columns, `[B, ...]`.

        Raises:
          ValueError: If the items differ in shape.
          ReplayUnavailable: If no server answers.
        """
        with self._stream(table, batch_size, batch_size) as stream:
            batch = stream.next_batch(batch_size)
        assert batch is not None  # No timeout.
        fields = len(SampleInfo._fields)
        return SampleInfo(*batch[:fields]), batch[fields:]

    @contextlib.contextmanager
    def _stream(
        self, table: str, num_samples: int, ahead: int
    ) -> Iterator[sampler.SampleStream]:
        """Yields a stream of a number of samples; keeps its connection afterwards."""
        stream = sampler.SampleStream(
            self._server_address,
            table,
            max_in_flight=min(num_samples, ahead),
            max_samples=num_samples,
            session=self._idle.take(),
            **self._access,
        )
        try:
            yield stream
        finally:
            session = stream.detach()
            if session is not None:
                self._idle.keep(session)


def steps(data: Sequence[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """Yields the steps of an item.

    Raises:
      ValueError: If the columns of the item have different lengths.
    """
    lengths = {len(column) if column.ndim else None for column in data}
    if len(lengths) != 1 or None in lengths:
        raise ValueError(
            "Can't split non timestep trajectory into timesteps. The columns have the "
            f"lengths {[c.shape[:1] for c in data]}: sample with emit_timesteps=False."
        )
    for i in range(len(data[0])):
        yield [np.asarray(column[i], column.dtype) for column in data]
