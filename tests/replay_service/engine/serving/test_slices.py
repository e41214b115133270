"""Large requests are worked on in slices, and others are answered in between."""

import asyncio
import re

import numpy as np
import pytest

from tests.replay_service.engine.serving.test_sessions import (
    NO_KEYS,
    Peer,
    Writer,
    in_loop,
    make_service,
    make_shared_service,
    rows_in_use,
    sample,
    sampler,
    table,
    turns,
)
from tfrl.replay_service import checkpointers, rate_limiters
from tfrl.replay_service import item_selectors as selectors
from tfrl.replay_service.engine.checkpoints import server_checkpoint
from tfrl.replay_service.engine.serving import (
    control_requests,
    sample_requests,
    sessions,
)
from tfrl.replay_service.engine.serving import service as service_lib
from tfrl.replay_service.engine.storage import step_store
from tfrl.replay_service.transport import wire

LARGE_SCHEMA = [["float32", [1000], "x"]]


class LargeWriter(Writer):
    """A writer of steps of 4000 bytes, in one message each time."""

    def write_large(self, count, keep=0):
        numbers = np.arange(self.seq, self.seq + count)
        refs = numbers[:, None]
        meta, arrays = self.group(refs, columns=[[0, 0, False]])
        meta = {"keep": keep, "episode": 0, "groups": [meta], "schema": LARGE_SCHEMA}
        data = np.repeat(numbers.astype(np.float32), 1000).reshape(count, 1000)
        self.say(wire.WRITE, meta, [numbers, data, *arrays])


@pytest.fixture
def small_slices(monkeypatch):
    """Makes slices small, and turns as short as one slice."""
    monkeypatch.setattr(step_store, "_SLICE", 8000)
    monkeypatch.setattr(sessions, "_TURN", 0.0)
    monkeypatch.setattr(service_lib, "_TURN", 0.0)
    monkeypatch.setattr(control_requests, "_CHECKED", 10)
    monkeypatch.setattr(control_requests, "_DELETED", 10)
    monkeypatch.setattr(control_requests, "_UPDATED", 10)


@in_loop
async def test_others_are_answered_between_the_slices_of_a_large_message(small_slices):
    service = make_service()
    writer, other = LargeWriter(service), Peer(service)
    other.take()
    writer.write_large(100)
    answered = 0
    while not writer.frames:
        other.say(wire.INFO)
        assert other.only(wire.INFO_REPLY).meta["tables"][0]["current_size"] == 0
        answered += 1
        await turns(1)
    assert answered > 40
    assert writer.only(wire.CONFIRMED).meta == {"confirmed": 100}
    reader = sampler(service)
    sample(reader, 100)
    while not (reader.frames and reader.frames[-1].meta["done"]):
        await turns(1)
    # The first and the last value of each step.
    data = np.concatenate([frame.arrays[5] for frame in reader.take()])
    assert (data == data[:, :, :1]).all()


@in_loop
async def test_a_client_s_messages_stay_in_order_behind_a_large_one(small_slices):
    service = make_service()
    writer = LargeWriter(service)
    writer.write_large(30)
    writer.write_large(3)
    writer.say(wire.INFO)
    while len(writer.frames) < 3:
        await turns(1)
    first, second, third = writer.take()
    assert first.meta == {"confirmed": 30}
    assert second.meta == {"confirmed": 33}
    assert third.meta["tables"][0]["current_size"] == 33


@in_loop
@pytest.mark.parametrize("waits", [0, 1, 5, 20])
async def test_a_client_that_leaves_in_a_large_message_leaves_nothing(
    small_slices, waits
):
    service = make_service()
    writer = LargeWriter(service)
    writer.write_large(100)
    await turns(waits)
    writer.session.close()
    await turns(100)
    assert rows_in_use(service) == 0
    assert len(service.tables["t"].table) == 0
    # The store is usable.
    again = LargeWriter(service)
    again.write_large(2)
    while not again.frames:
        await turns(1)
    assert len(service.tables["t"].table) == 2


@in_loop
async def test_large_samples_are_gathered_between_other_requests(small_slices):
    service = make_service()
    writer = LargeWriter(service)
    data = np.arange(50_000, dtype=np.float32).reshape(1, 50_000)
    meta, arrays = writer.group([[0]], columns=[[0, 0, True]])
    schema = [["float32", [50_000], "x"]]
    meta = {"keep": 1, "episode": 0, "groups": [meta], "schema": schema}
    writer.say(wire.WRITE, meta, [np.array([0]), data, *arrays])
    while not writer.frames:
        await turns(1)
    reader, other = sampler(service), Peer(service)
    other.take()
    sample(reader, 1)
    count = 0
    while not reader.frames:
        other.say(wire.INFO)
        other.only(wire.INFO_REPLY)
        count += 1
        await turns(1)
    assert count > 20
    np.testing.assert_array_equal(reader.only(wire.SAMPLES).arrays[5], data)
    sample(reader, 1)
    await turns(3)
    reader.session.close()
    writer.session.close()
    await turns(20)
    assert rows_in_use(service) == 1


def keys_of(service):
    return service.tables["t"].table.state()[1]["keys"]


@in_loop
async def test_keys_are_mutated_in_slices_in_order(small_slices):
    service = make_service()
    writer = Writer(service)
    for _ in range(10):
        writer.insert(10)
    keys = keys_of(service)
    peer, other = Peer(service), Peer(service)
    peer.take(), other.take()
    # Deletes come first. A key that occurs twice gets its last priority.
    twice = np.concatenate([keys, keys[::-1]])
    priorities = np.arange(200.0)
    peer.say(wire.MUTATE, {"table": "t"}, [twice, priorities, keys[:35]])
    sizes = []
    while not peer.frames:
        other.say(wire.INFO)
        info = other.only(wire.INFO_REPLY).meta["tables"][0]
        sizes.append(info["current_size"])
        await turns(1)
    peer.only(wire.OK)
    assert sorted(set(sizes), reverse=True) == [100, 90, 80, 70, 65]
    table = service.tables["t"].table
    assert table.state()[1]["priorities"].tolist() == list(np.arange(164.0, 99.0, -1))
    await turns(20)
    assert rows_in_use(service) == 65


@in_loop
async def test_an_invalid_priority_at_the_end_changes_nothing(small_slices):
    service = make_service(table(sampler=selectors.Prioritized(3.0)))
    Writer(service).insert(100)
    keys = keys_of(service)
    for bad, message in ((-1.0, "Priority -1.0 for table 't'"), (1e300, "1e\\+300")):
        priorities = np.full(100, 2.0)
        priorities[99] = bad
        peer = Peer(service)
        peer.take()
        peer.say(wire.MUTATE, {"table": "t"}, [keys, priorities, keys[:50]])
        while not peer.frames:
            await turns(1)
        assert re.search(message, peer.only(wire.ERROR).meta["message"])
    assert service.tables["t"].table.state()[1]["priorities"].tolist() == [1.0] * 100


@in_loop
async def test_a_writer_that_waits_is_woken_by_deletes_in_slices(small_slices):
    service = make_service(table(limiter=rate_limiters.Queue(30)))
    writer = Writer(service)
    writer.insert(30)
    writer.take()
    writer.insert(5)
    assert not writer.frames
    peer = Peer(service)
    peer.take()
    peer.say(wire.MUTATE, {"table": "t"}, [NO_KEYS, np.zeros(0), keys_of(service)])
    while not (peer.frames and writer.frames):
        await turns(1)
    # An empty table takes one item; the difference forbids more.
    assert writer.only(wire.CONFIRMED).meta == {"confirmed": 31}


@in_loop
async def test_a_reset_is_seen_immediately_and_frees_steps_in_slices(small_slices):
    service = make_service(table(max_size=100_000))
    writer = Writer(service)
    for _ in range(40):
        writer.insert(256)
        await turns(10)
    assert rows_in_use(service) == 40 * 256
    peer = Peer(service)
    peer.take()
    peer.say(wire.RESET, {"table": "t"})
    peer.only(wire.OK)
    assert len(service.tables["t"].table) == 0
    assert len(service.background)
    peer.session.close()
    while len(service.background):
        await turns(1)
    assert rows_in_use(service) == 0


@in_loop
async def test_the_pins_of_a_session_that_ends_are_released_in_slices(
    small_slices, monkeypatch
):
    monkeypatch.setattr(sample_requests, "_PINS_PER_SLICE", 1)
    service = make_shared_service(table(max_times_sampled=1))
    Writer(service).insert(10)
    reader = sampler(service, shared=True)
    for _ in range(10):
        sample(reader, 1)
    assert len(service.tables["t"].table) == 0
    assert rows_in_use(service) == 10
    reader.session.close()
    assert rows_in_use(service) == 9
    while len(service.background):
        await turns(1)
    assert rows_in_use(service) == 0


@in_loop
async def test_a_checkpoint_in_a_mutation_has_the_state_of_one_moment(
    small_slices, tmp_path
):
    checkpointer = checkpointers.DefaultCheckpointer(tmp_path)
    service = make_service(checkpointer=checkpointer)
    writer = Writer(service)
    for _ in range(10):
        writer.insert(10)
    keys = keys_of(service)
    peer, other = Peer(service), Peer(service)
    peer.take(), other.take()
    peer.say(wire.MUTATE, {"table": "t"}, [keys[50:], np.full(50, 3.0), keys[:50]])
    while len(service.tables["t"].table) > 70:
        await turns(1)
    size = len(service.tables["t"].table)
    other.say(wire.CHECKPOINT)
    await turns(1)
    assert len(service.tables["t"].table) < size + 1
    while not (peer.frames and other.frames):
        await asyncio.sleep(0.001)
    peer.only(wire.OK)
    restored = make_service(checkpointer=checkpointer)
    server_checkpoint.restore_latest(restored)
    _, arrays = restored.tables["t"].table.state()
    # Deletes come before updates, and none of them is there in part.
    count = len(arrays["keys"])
    assert count in (50, 60, 70)
    assert arrays["keys"].tolist() == keys[100 - count :].tolist()
    updated = int((arrays["priorities"] == 3.0).sum())
    assert updated % 10 == 0
    assert not updated or count == 50
    assert rows_in_use(restored) == count
    assert len(service.tables["t"].table) == 50
    await turns(20)
    assert rows_in_use(service) == 50


@in_loop
async def test_items_removed_during_a_checkpoint_are_kept_until_its_end(tmp_path):
    service = make_service(checkpointer=checkpointers.DefaultCheckpointer(tmp_path))
    writer = Writer(service)
    writer.insert(20)
    peer, other = Peer(service), Peer(service)
    peer.take(), other.take()
    peer.say(wire.CHECKPOINT)
    await turns(2)
    other.say(wire.RESET, {"table": "t"})
    other.only(wire.OK)
    assert rows_in_use(service) == 20
    while not peer.frames:
        await asyncio.sleep(0.001)
    peer.only(wire.OK)
    await turns(5)
    assert rows_in_use(service) == 0
    restored = make_service(checkpointer=checkpointers.DefaultCheckpointer(tmp_path))
    server_checkpoint.restore_latest(restored)
    assert len(restored.tables["t"].table) == 20
