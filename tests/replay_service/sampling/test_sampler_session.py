"""The memory that a sampler keeps of a server does not grow."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tfrl.replay_service import item_selectors, rate_limiters
from tfrl.replay_service.engine.serving import sample_requests
from tfrl.replay_service.sampling import sampler_session
from tfrl.replay_service.table import Table


def _open_files():
    path = "/proc/self/fd"
    return len(os.listdir(path)) if os.path.isdir(path) else 0


@pytest.mark.parametrize("transport", ["shared", "unix"])
def test_items_of_ever_new_shapes_take_no_more_files(
    start_server, monkeypatch, transport
):
    monkeypatch.setenv("TFRL_REPLAY_TRANSPORT", transport)
    fifo = item_selectors.Fifo()
    table = Table("shapes", fifo, fifo, 100, rate_limiters.MinSize(1), 1)
    client = start_server([table]).localhost_client()
    files = _open_files()
    for size in range(1, 150):
        client.insert(np.full(size, size, np.float32), {"shapes": 1.0})
        (sample,) = client.sample("shapes", 1, emit_timesteps=False)
        np.testing.assert_array_equal(sample.data[0], np.full((1, size), size))
    # Those of the views, and of connections.
    assert _open_files() - files < sampler_session._MOST_VIEWS + 20


@pytest.mark.slow
def test_the_client_remembers_more_layouts_than_the_server_takes_for_known():
    assert sampler_session._MOST_DEFINITIONS > sample_requests._MAX_DEFINITIONS

    class Connection:
        shared = False

    session = sampler_session.SamplerSession(Connection())
    for number in range(sampler_session._MOST_DEFINITIONS + 3):
        session.define(number, {"schema": number})
    session.define(3, {"schema": -3})
    assert session.layout(3) == ({"schema": -3}, None)
    assert session.layout(number) == ({"schema": number}, None)
    with pytest.raises(KeyError):
        session.layout(2)
