"""Draws samples for `Client.sample`, through a pool of connections."""

from __future__ import annotations

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
        stream = sampler.SampleStream(
            self._server_address,
            table,
            max_in_flight=min(num_samples, _AHEAD),
            max_samples=num_samples,
            session=self._idle.take(),
            **self._access,
        )
        try:
            while num_samples:
                for item in stream.next_items(num_samples) or ():
                    num_samples -= 1
                    yield item
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
