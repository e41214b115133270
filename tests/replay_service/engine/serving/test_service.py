"""What the sessions of a server share."""

import asyncio
import logging
import os
import sys
import threading
import time

import pytest

from tfrl.replay_service import checkpointers, errors, rate_limiters
from tfrl.replay_service import item_selectors as selectors
from tfrl.replay_service.engine.checkpoints import server_checkpoint
from tfrl.replay_service.engine.serving import service
from tfrl.replay_service.table import Table
from tfrl.replay_service.transport import framing


def make_service(tmp_path=None, **kwargs):
    fifo = selectors.Fifo()
    tables = [
        Table(name, selectors.Uniform(), fifo, 100, rate_limiters.MinSize(1))
        for name in ("t", "u")
    ]
    if tmp_path is not None:
        kwargs["checkpointer"] = checkpointers.DefaultCheckpointer(tmp_path)
    return service.Service([table.to_config() for table in tables], **kwargs)


def test_writers_with_the_same_schema_share_a_store():
    made = make_service(shared=False)
    schema = (("float32", (3,)), ("int64", ()))
    store = made.store(schema)
    assert made.store(schema) is store
    assert made.store(schema[:1]) is not store
    assert made.find_store(store.schema_id) is store
    assert made.find_store("nope") is None


def array_of(size):
    return (("float32", (size,)),)


def test_stores_without_steps_are_dropped_when_there_are_many(monkeypatch):
    monkeypatch.setattr(service, "_FEW_STORES", 2)
    made = make_service(shared=False)
    made._most_stores = 2
    first, second = (made.store(array_of(size)) for size in (1, 2))
    first.allocate(1)
    slots = second.allocate(1)
    layout = made.layouts.find(second, [(0, 0, False)], [1])
    payloads = made.layouts.add(layout, slots)
    second.release(slots)
    made.store(array_of(3))
    assert made.store(array_of(2)) is second
    made.layouts.remove(payloads)
    # Nothing refers to a step of the second and the third any more.
    made.store(array_of(4)).allocate(1)
    fifth = made.store(array_of(5))
    assert made.find_store(second.schema_id) is None
    assert fifth.schema_id not in (first.schema_id, second.schema_id)
    assert set(made.stores) == {array_of(size) for size in (1, 4, 5)}
    assert made.layouts.find(fifth, [(0, 0, False)], [1]).id != layout.id


def test_stores_in_use_are_not_looked_through_for_each_new_one(monkeypatch):
    sweeps = []
    sweep = service.Service._drop_unused_stores
    monkeypatch.setattr(
        service.Service,
        "_drop_unused_stores",
        lambda self: (sweeps.append(len(self.stores)), sweep(self)),
    )
    made = make_service(shared=False)
    for size in range(1000):
        made.store(array_of(size)).allocate(1)
    assert len(made.stores) == 1000
    assert sweeps == [64, 128, 256, 512]


def test_only_some_stores_can_be_mapped(monkeypatch):
    monkeypatch.setattr(service, "_MOST_MAPPED", 2)
    monkeypatch.setattr(service, "_FEW_STORES", 3)
    made = make_service(shared=True)
    made._most_stores = 3
    if make_service(shared=True).store(array_of(1)).fd is None:
        pytest.skip("This system cannot share memory.")
    slots = {size: made.store(array_of(size)).allocate(1) for size in range(1, 4)}
    mapped = {size: made.store(array_of(size)).fd is not None for size in slots}
    assert mapped == {1: True, 2: True, 3: False}
    made.store(array_of(2)).release(slots[2])
    assert made.store(array_of(4)).fd is not None
    for store in made.stores.values():
        store.close()


def test_welcome_tells_of_tables_and_strangers_of_the_way_in():
    made = make_service()
    made.local = {"socket": "s"}
    assert made.welcome(is_local=False)["local"] == {"socket": "s"}
    welcome = made.welcome(is_local=True)
    assert welcome["local"] is None
    assert welcome["tables"] == {"t": {"signature": None}, "u": {"signature": None}}
    assert welcome["server_id"] != make_service().server_id


@pytest.mark.parametrize("given", [None, 3, "", "x", ["x"]])
def test_wrong_secrets_are_not_accepted(given):
    made = make_service(token="right")
    assert not made.admits(given)
    digest = framing.token_digest(given) if isinstance(given, str) else framing.NO_TOKEN
    assert not made.admits(digest)
    assert not made.admits_locally(given)
    assert made.admits(framing.token_digest("right"))
    assert made.admits_locally(made.secret)


def test_tables_of_a_seeded_server_draw_different_numbers_and_the_same_each_time():
    states = [
        [
            queues.table.state()[0]["random"]["state"]
            for queues in make_service(seed=5).tables.values()
        ]
        for _ in range(2)
    ]
    assert states[0] == states[1]
    assert states[0][0] != states[0][1]


def test_unknown_table_is_a_runtime_error():
    made = make_service()
    assert made.queues_of("u").table.name == "u"
    for name in ("nope", ["t"], None):
        with pytest.raises(RuntimeError, match=r"Priority table .* was not found"):
            made.queues_of(name)


def test_checkpoints_are_written_one_at_a_time(monkeypatch, tmp_path):
    write = server_checkpoint.write
    running = threading.Lock()

    def write_alone(*arguments):
        assert running.acquire(blocking=False)
        try:
            return write(*arguments)
        finally:
            running.release()

    monkeypatch.setattr(server_checkpoint, "write", write_alone)

    async def write_two():
        made = make_service(tmp_path)
        return await asyncio.gather(made.checkpoint(), made.checkpoint())

    first, second = asyncio.run(write_two())
    assert first != second


@pytest.mark.skipif(sys.platform != "linux", reason="needs holes in files")
def test_memory_that_was_not_needed_for_a_while_is_given_back(monkeypatch):
    monkeypatch.setattr(service, "_TICK", 0.005)
    monkeypatch.setattr(service, "_SPARE_TICKS", 2)

    async def go():
        made = make_service()
        store = made.store((("uint8", (1 << 20,)),))
        slots = store.allocate(20)
        made.start()
        for _ in range(10):
            await asyncio.sleep(0.01)
        assert os.fstat(store.fd).st_blocks * 512 >= 20 << 20
        store.release(slots[1:])
        while os.fstat(store.fd).st_blocks * 512 > 3 << 20:
            await asyncio.sleep(0.01)
        made.stop()
        store.close()

    asyncio.run(asyncio.wait_for(go(), 20))


@pytest.mark.skipif(sys.platform != "linux", reason="needs holes in files")
def test_a_dropped_store_leaves_no_memory_to_those_who_map_it(monkeypatch):
    monkeypatch.setattr(service, "_FEW_STORES", 1)
    made = make_service()
    made._most_stores = 1
    store = made.store(array_of(1 << 20))
    store.release(store.allocate(10))
    fd = os.dup(store.fd)
    made.store(array_of(2))
    assert store.fd is None
    assert os.fstat(fd).st_blocks == 0
    os.close(fd)


def test_refusals_are_counted_when_they_are_many(caplog, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    events = service.EventLog()
    with caplog.at_level(logging.WARNING, "tfrl.replay_service"):
        for i in range(50):
            events.refused("ipv4:127.0.0.1:1", f"It sent {i}." + 10_000 * "x")
        assert len(caplog.records) == 20
        assert all(len(record.getMessage()) < 600 for record in caplog.records)
        now[0] += 11.0
        events.refused("ipv4:127.0.0.1:1", "again")
    *_, left_out, last = caplog.messages
    assert left_out == "Refused clients 30 more times."
    assert last == "Refused a client from ipv4:127.0.0.1:1: again"


class Session:
    def __init__(self):
        self.error = None

    def refuse(self, error):
        self.error = error


def test_the_oldest_of_its_transport_gives_way(monkeypatch):
    monkeypatch.setattr(service, "_MOST_LOCAL", 3)
    monkeypatch.setattr(service, "_MOST_REMOTE", 1)
    waiting = service.Newcomers()
    local = [Session() for _ in range(4)]
    remote = [Session() for _ in range(2)]
    for session in local[:3]:
        waiting.add(session, is_local=True)
    for session in remote:
        waiting.add(session, is_local=False)
    assert isinstance(remote[0].error, errors.ReplayUnavailable)
    waiting.discard(local[0])
    waiting.add(local[3], is_local=True)
    assert [session.error for session in [*local, remote[1]]] == [None] * 5
    assert len(waiting) == 4
    waiting.discard(local[0])


def work(done, name, slices):
    for i in range(slices):
        if i:
            yield
        done.append((name, i))


def run(test):
    asyncio.run(asyncio.wait_for(test(), 30))


def test_the_first_slice_is_done_immediately():
    async def check():
        done = []
        background = service.BackgroundWork()
        background.add(work(done, "a", 1))
        assert done == [("a", 0)]
        assert not len(background)
        background.add(work(done, "b", 3))
        assert done[1:] == [("b", 0)]
        assert len(background) == 1

    run(check)


def test_other_callbacks_run_between_slices_and_work_stays_in_order(monkeypatch):
    monkeypatch.setattr(service, "_TURN", 0.0)

    async def check():
        done = []
        background = service.BackgroundWork()
        background.add(work(done, "a", 3))
        background.add(work(done, "b", 2))
        turns = 0
        while len(background):
            turns += 1
            await asyncio.sleep(0)
        assert done == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)]
        # Ends are noticed in turns of their own.
        assert turns >= 4
        background.add(work(done, "c", 1))
        assert done[-1] == ("c", 0)

    run(check)


def test_without_a_loop_all_is_done():
    done = []
    background = service.BackgroundWork()
    background.add(work(done, "a", 3))
    assert len(done) == 3
    assert not len(background)


def test_work_that_fails_does_not_keep_other_work_from_being_done(capsys):
    def failing():
        yield
        raise AssertionError("no such slot")

    async def check():
        done = []
        background = service.BackgroundWork()
        background.add(failing())
        background.add(work(done, "a", 2))
        while len(background):
            await asyncio.sleep(0)
        assert len(done) == 2

    run(check)
    assert "no such slot" in capsys.readouterr().err
