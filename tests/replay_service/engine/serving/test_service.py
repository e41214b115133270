"""What the sessions of a server share."""

import asyncio
import threading

import pytest

from tfrl.replay_service import checkpointers, errors, rate_limiters
from tfrl.replay_service import item_selectors as selectors
from tfrl.replay_service.engine.checkpoints import server_checkpoint
from tfrl.replay_service.engine.serving import service
from tfrl.replay_service.table import Table


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


def test_schemas_are_not_without_number(monkeypatch):
    monkeypatch.setattr(service, "_MAX_SCHEMAS", 2)
    made = make_service(shared=False)
    first, second = (made.store((("float32", (size,)),)) for size in (1, 2))
    first.allocate(1)
    slots = second.allocate(1)
    with pytest.raises(errors.ResourceExhaustedError, match="the same columns"):
        made.store((("float32", (3,)),))
    assert made.store((("float32", (2,)),)) is second
    layout = made.layouts.find(second, [(0, 0, False)], [1])
    payloads = made.layouts.add(layout, slots)
    second.release(slots)
    made.layouts.remove(payloads)
    # Nothing refers to a step of the second any more.
    third = made.store((("float32", (3,)),))
    assert made.find_store(second.schema_id) is None
    assert third.schema_id not in (first.schema_id, second.schema_id)
    assert len(made.layouts) == 0
    assert made.layouts.find(third, [(0, 0, False)], [1]).id != layout.id


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
    assert not made.admits(given.encode() if isinstance(given, str) else None)
    assert not made.admits_locally(given)
    assert made.admits(b"right")
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
