"""Replay buffers of the replay service, made in one call."""

from __future__ import annotations

from tfrl import replay_service
from tfrl.replay_buffers import reverb_replay_buffer, reverb_utils
from tfrl.specs import tensor_spec
from tfrl.typing import types


def get_reverb_buffer(
    data_spec: types.NestedTensorSpec,
    sequence_length: int | None = None,
    table_name: str = "uniform_table",
    table: replay_service.Table | None = None,
    reverb_server_address: str | None = None,
    port: int | None = None,
    replay_capacity: int = 1000,
    min_size_limiter_size: int = 1,
) -> reverb_replay_buffer.ReverbReplayBuffer:
    """Returns a buffer on a table of a server; starts a server if no address is given.

    Args:
      data_spec: A nest of specs of one frame.
      sequence_length: The number of frames of an item (`T`); None if it varies.
      table_name: The table's name.
      table: The table of a new server; None makes one that samples uniformly and
        removes the oldest item.
      reverb_server_address: The address of a running server, as "host:port"; None
        starts one, `local_server` of the result.
      port: The port of a new server; None takes a free one.
      replay_capacity: The largest number of items in the new table.
      min_size_limiter_size: The number of items in the new table before samples can be
        drawn.

    Raises:
      ValueError: A running server has no such table, or an argument of a new server is
        wrong.
    """
    server = None
    if reverb_server_address is None:
        if table is None:
            table = replay_service.Table(
                table_name,
                sampler=replay_service.selectors.Uniform(),
                remover=replay_service.selectors.Fifo(),
                max_size=replay_capacity,
                rate_limiter=replay_service.rate_limiters.MinSize(
                    min_size_limiter_size
                ),
                signature=tensor_spec.add_outer_dim(data_spec, sequence_length),
            )
        server = replay_service.Server([table], port=port)
    return reverb_replay_buffer.ReverbReplayBuffer(
        data_spec,
        table_name,
        sequence_length,
        server_address=reverb_server_address,
        local_server=server,
    )


def get_reverb_buffer_and_observer(
    data_spec: types.NestedTensorSpec,
    sequence_length: int | None = None,
    table_name: str = "uniform_table",
    table: replay_service.Table | None = None,
    reverb_server_address: str | None = None,
    port: int | None = None,
    replay_capacity: int = 1000,
    min_size_limiter_size: int = 1,
    stride_length: int = 1,
) -> tuple[
    reverb_replay_buffer.ReverbReplayBuffer,
    reverb_utils.ReverbAddTrajectoryObserver,
]:
    """Returns a buffer and the observer that writes overlapping sequences to it.

    Args:
      data_spec: See `get_reverb_buffer`.
      sequence_length: The number of frames of an item (`T`).
      table_name: See `get_reverb_buffer`.
      table: See `get_reverb_buffer`.
      reverb_server_address: See `get_reverb_buffer`.
      port: See `get_reverb_buffer`.
      replay_capacity: See `get_reverb_buffer`.
      min_size_limiter_size: See `get_reverb_buffer`.
      stride_length: The number of frames between the starts of two items.

    Raises:
      ValueError: See `get_reverb_buffer`; or `sequence_length` is None.
    """
    if sequence_length is None:
        raise ValueError(
            "sequence_length: got None, expected the number of frames in an item, such "
            "as 2; write whole episodes with a reverb_utils.ReverbAddEpisodeObserver."
        )
    replay_buffer = get_reverb_buffer(
        data_spec,
        sequence_length,
        table_name,
        table,
        reverb_server_address,
        port,
        replay_capacity,
        min_size_limiter_size,
    )
    observer = reverb_utils.ReverbAddTrajectoryObserver(
        replay_buffer.py_client,
        table_name,
        sequence_length=sequence_length,
        stride_length=stride_length,
    )
    return replay_buffer, observer
