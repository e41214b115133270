"""Clients share their connections for samples among threads and generators."""

import gc
import threading

import pytest

from tfrl.replay_service.sampling import client_samples


@pytest.mark.slow
def test_the_collector_can_close_a_generator_while_connections_are_shared_out(client):
    for i in range(2):
        client.insert(i, {"any": 1.0})
    samples = client_samples.ClientSamples(client.server_address, {})

    class Collecting(list):
        def __len__(self):
            gc.collect()
            return super().__len__()

    samples._idle._idle = Collecting()
    generator = samples.draw("any", 1)
    cycle = [generator]
    cycle.append(cycle)
    next(generator)
    del generator, cycle
    drawn = []
    thread = threading.Thread(
        target=lambda: drawn.extend(samples.draw("any", 1)), daemon=True
    )
    thread.start()
    thread.join(10)
    assert [data[0].tolist() for _, data in drawn] == [[1]]
