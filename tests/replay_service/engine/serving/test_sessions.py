"""Sessions answer messages, wait for limiters, and free what they held."""

import asyncio
import gc
import random
import weakref

import numpy as np
import pytest

from tfrl.replay_service import errors, rate_limiters
from tfrl.replay_service import item_selectors as selectors
from tfrl.replay_service.engine.serving import service as service_lib
from tfrl.replay_service.engine.serving.protocols import SessionHandlers
from tfrl.replay_service.engine.serving.service import Service
from tfrl.replay_service.engine.serving.sessions import Session
from tfrl.replay_service.engine.storage import step_store
from tfrl.replay_service.table import Table
from tfrl.replay_service.transport import wire
from tfrl.specs.array_spec import ArraySpec

SCHEMA = [["float32", [3], "a"], ["int64", [], "b"]]
NO_KEYS = np.zeros(0, np.uint64)


def table(name="t", limiter=None, max_size=1000, **kwargs):
    limiter = limiter or rate_limiters.MinSize(1)
    fifo = selectors.Fifo()
    return Table(name, kwargs.pop("sampler", fifo), fifo, max_size, limiter, **kwargs)


def make_service(*tables, **kwargs):
    tables = tables or (table(),)
    options = {"seed": 1, "shared": False} | kwargs
    return Service([t.to_config() for t in tables], **options)


def make_shared_service(*tables):
    """Returns a service whose steps other processes can map."""
    probe = step_store.make_arena([1], shared=True)
    if probe.fd is None:
        pytest.skip("This system cannot share memory.")
    probe.close()
    return make_service(*tables, shared=True)


class Peer:
    """A client whose transport is a list."""

    def __init__(self, service, role="control", **hello):
        self.frames = []
        self.is_open = True
        self.reads = True
        self.session = Session(service, SessionHandlers, self, is_local=True)
        hello.setdefault("secret", service.secret)
        self.say(wire.HELLO, {"protocol": wire.PROTOCOL, "role": role, **hello})

    def send(self, buffers):
        self.frames.append(wire.decode(b"".join(bytes(b) for b in buffers)))

    def pause_reading(self):
        self.reads = False

    def resume_reading(self):
        self.reads = True

    def close(self):
        self.is_open = False

    def say(self, kind, meta=None, arrays=()):
        self.session.receive(b"".join(wire.encode(kind, meta, arrays)))

    def take(self):
        frames, self.frames = self.frames, []
        return frames

    def only(self, kind):
        (frame,) = self.take()
        assert frame.kind == kind, frame
        return frame


def silent(service):
    """Returns a peer that has not sent a greeting."""
    peer = Peer.__new__(Peer)
    peer.frames, peer.is_open, peer.reads = [], True, True
    peer.session = Session(service, SessionHandlers, peer, is_local=True)
    return peer


class Writer(Peer):
    """A writer of steps whose column "b" is their number."""

    def __init__(self, service, **hello):
        super().__init__(service, "writer", **hello)
        self.welcome = self.only(wire.WELCOME).meta
        self.seq = self.welcome["confirmed"]
        self.schema = SCHEMA

    def group(
        self, refs, name="t", priority=1.0, episode=0, columns=None, lengths=None
    ):
        refs = np.asarray(refs, np.int64)
        lengths = lengths or [refs.shape[1]]
        columns = columns or [[0, 0, False], [1, 0, False]]
        meta = {"table": name, "columns": columns, "lengths": lengths}
        numbers = np.arange(len(refs)) + self.seq + 1
        self.seq += len(refs)
        priorities = np.full(len(refs), priority, np.float64)
        meta |= {"n": len(refs), "episode": episode}
        return meta, [refs, priorities, numbers]

    def write(self, steps, *groups, keep=0):
        steps = np.asarray(steps, np.int64)
        meta = {"keep": keep, "episode": 0, "groups": [meta for meta, _ in groups]}
        if self.schema:
            meta["schema"], self.schema = self.schema, None
        a = np.repeat(steps, 3).reshape(-1, 3).astype(np.float32)
        arrays = [steps, a, steps]
        for _, more in groups:
            arrays += more
        self.say(wire.WRITE, meta, arrays)

    def insert(self, count, **kwargs):
        """Inserts `count` items of one new step each."""
        first = self.seq
        refs = np.arange(first, first + count)
        self.write(refs, self.group(refs[:, None], **kwargs), keep=first + count)


def sample(peer, num, timeout=-1, request=0, release=0, name="t"):
    meta = {"table": name, "num": num, "timeout_ms": timeout}
    peer.say(wire.SAMPLE, meta | {"request": request, "release": release})


def sampler(service, **hello):
    peer = Peer(service, "sampler", **hello)
    peer.take()
    return peer


def rows_in_use(service):
    return sum(store.rows_in_use for store in service.stores.values())


def in_loop(test):
    def run(*args, **kwargs):
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 30))

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    run.__wrapped__ = test
    run.pytestmark = getattr(test, "pytestmark", [])
    return run


async def turns(count=20):
    for _ in range(count):
        await asyncio.sleep(0)


@in_loop
async def test_items_come_back_as_written():
    service = make_service()
    writer = Writer(service)
    writer.write([0, 1, 2], writer.group([[0, 1], [1, 2]], priority=2.5))
    assert writer.only(wire.CONFIRMED).meta == {"confirmed": 2}
    peer = sampler(service)
    sample(peer, 2, request=7)
    frame = peer.only(wire.SAMPLES)
    assert frame.meta["request"] == 7
    assert frame.meta["done"] is True
    assert frame.meta["define"]["lengths"] == [2]
    keys, probabilities, sizes, priorities, times, a, b = frame.arrays
    assert keys[0] == keys[1]
    np.testing.assert_array_equal(probabilities, [1, 1])
    np.testing.assert_array_equal(sizes, [2, 2])
    np.testing.assert_array_equal(priorities, [2.5, 2.5])
    np.testing.assert_array_equal(times, [1, 2])
    np.testing.assert_array_equal(b, [[0, 1], [0, 1]])
    np.testing.assert_array_equal(a[0], [[0, 0, 0], [1, 1, 1]])


@in_loop
async def test_layouts_are_defined_once_and_split_messages_in_draw_order():
    service = make_service(table(max_times_sampled=1))
    writer = Writer(service)
    squeezed = {"columns": [[1, 0, True], [0, 1, False]], "lengths": [1, 2]}
    writer.write(
        range(4),
        writer.group([[0], [1]]),
        writer.group([[2, 0, 1]], **squeezed),
        writer.group([[3]]),
    )
    peer = sampler(service)
    sample(peer, 4)
    await turns()
    first, second, third = peer.take()
    np.testing.assert_array_equal(first.arrays[6], [[0], [1]])
    np.testing.assert_array_equal(second.arrays[5], [2])
    assert second.arrays[6].shape == (1, 2, 3)
    np.testing.assert_array_equal(third.arrays[6], [[3]])
    assert [f.meta["done"] for f in (first, second, third)] == [False, False, True]
    assert "define" in second.meta
    assert "define" not in third.meta


@in_loop
async def test_a_layout_ends_with_its_last_item_and_its_samples_are_sent_all_the_same():
    service = make_service(table(max_times_sampled=1))
    writer, peer = Writer(service), sampler(service)
    ids = set()
    for turn in range(3):
        for length in (1, 2, 3):
            refs = 3 * turn + np.arange(3)
            writer.write(refs, writer.group([refs[:length]]))
            assert len(service.layouts) == 1
            sample(peer, 1)
            frame = peer.only(wire.SAMPLES)
            assert len(service.layouts) == 0
            assert ("define" in frame.meta) == (turn == 0)
            np.testing.assert_array_equal(frame.arrays[6], [refs[:length]])
            ids.add(frame.meta["layout"])
    assert len(ids) == 3


@in_loop
async def test_steps_that_cannot_be_mapped_are_sent_to_clients_that_map_others(
    monkeypatch,
):
    monkeypatch.setattr("tfrl.replay_service.engine.serving.service._MOST_MAPPED", 1)
    service = make_shared_service(table(max_times_sampled=1))
    for _ in range(2):
        writer = Writer(service)
        writer.insert(2)
        other = Writer(service)
        other.schema = SCHEMA[:1]
        refs = np.arange(1)
        group, arrays = other.group([[0]], columns=[[0, 0, False]])
        meta = {"keep": 1, "episode": 0, "groups": [group], "schema": SCHEMA[:1]}
        other.say(wire.WRITE, meta, [refs, np.full((1, 3), 5, np.float32), *arrays])
    mapped, sent = service.stores.values()
    assert sent.fd is None
    peer = sampler(service, shared=True)
    sample(peer, 6)
    await turns()
    frames = peer.take()
    assert [frame.meta.get("define", {}).get("mapped") for frame in frames] == [
        *(True, False),
        *(None, None),
    ]
    for frame in frames[::2]:
        (slots,) = frame.arrays[5:]
        assert mapped.read(1, slots).tolist() == [[0], [1]]
    for frame in frames[1::2]:
        (data,) = frame.arrays[5:]
        assert data.tolist() == [[[5, 5, 5]]]
    assert sent.rows_in_use == 0
    assert mapped.rows_in_use == 4
    peer.say(wire.RELEASE, {"release": 2})
    assert mapped.rows_in_use == 0
    mapped.close()


@in_loop
async def test_items_that_are_refused_leave_no_layouts():
    service = make_service(table(signature=ArraySpec((2,), np.int64)))
    writer = Writer(service)
    writer.write([0, 1], writer.group([[0, 1]], columns=[[1, 0, False]]))
    assert len(service.layouts) == 1
    for refs in ([[0, 2]], [[0, 1, 0]], [[1]]):
        for name in ("t", "nope"):
            for priority in (1.0, -1.0):
                group = writer.group(
                    refs, name, priority, columns=[[1, 0, False]] * len(refs[0])
                )
                writer.write([], group)
    assert len([f for f in writer.take() if f.kind == wire.ERROR]) == 12
    assert len(service.layouts) == 1
    writer.session.close()
    for payloads in service.tables["t"].table.reset():
        service.layouts.remove(payloads)
    assert len(service.layouts) == 0


@in_loop
async def test_a_session_remembers_a_number_of_layouts_at_most(monkeypatch):
    monkeypatch.setattr(
        "tfrl.replay_service.engine.serving.write_requests._MAX_KNOWN", 9
    )
    service = make_service(table(max_size=1))
    writer = Writer(service)
    writer.write(range(3))
    for length in [1, 2, 3] * 5:
        groups = [writer.group([np.arange(length)]) for _ in range(2)]
        writer.write([], *groups)
    assert {frame.kind for frame in writer.take()} == {wire.CONFIRMED}
    state = writer.session._handlers._writer
    assert 1 <= len(state._targets) <= 3
    assert service.info()[0]["rate_limiter_info"]["insert_stats"]["completed"] == 30


@in_loop
async def test_items_without_memory_for_their_slots_are_refused(monkeypatch):
    service = make_service()
    writer = Writer(service)
    writer.write(range(2))

    def refuse(*_):
        raise errors.ResourceExhaustedError("no")

    monkeypatch.setattr(service.layouts, "_check_memory", refuse)
    writer.write([], writer.group([[0, 1]]))
    _, refused, confirmed = writer.take()
    assert refused.meta["code"] == "resource_exhausted"
    assert confirmed.meta["confirmed"] == 1
    assert writer.is_open


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"TR",
        bytes(100),
        b"".join(wire.encode(wire.INFO, {})),
        b"".join(wire.encode(99, {})),
        b"".join(wire.encode(wire.HELLO, {"protocol": 1, "role": "control"})),
        b"".join(wire.encode(wire.HELLO, {"protocol": wire.PROTOCOL, "role": "king"})),
    ],
)
@in_loop
async def test_what_is_no_greeting_ends_the_session(first):
    service = make_service()
    peer = Peer(service)
    peer.take()
    other = Peer.__new__(Peer)
    other.frames, other.is_open = [], True
    other.session = Session(service, SessionHandlers, other, is_local=True)
    other.session.receive(first)
    assert other.only(wire.ERROR).meta["code"] == "protocol"
    assert not other.is_open
    peer.say(wire.INFO, {})
    peer.only(wire.INFO_REPLY)


@in_loop
async def test_the_secret_of_the_host_is_asked_for():
    service = make_service(token="right")
    assert Peer(service, secret="x").only(wire.ERROR).meta["code"] == "unauthenticated"
    Peer(service).only(wire.WELCOME)


@in_loop
async def test_greeting_has_a_deadline(monkeypatch):
    monkeypatch.setattr(
        "tfrl.replay_service.engine.serving.sessions._HELLO_DEADLINE", 0.01
    )
    peer = silent(make_service())
    await asyncio.sleep(0.05)
    assert peer.only(wire.ERROR).meta["code"] == "protocol"


@in_loop
async def test_unknown_table_is_an_answer_and_the_session_goes_on():
    service = make_service()
    peer = sampler(service)
    expected = "Priority table nope was not found"
    sample(peer, 1, name="nope", request=3)
    error = peer.only(wire.ERROR).meta
    assert error == {"code": "not_found", "message": expected, "request": 3}
    peer.say(wire.RESET, {"table": "nope"})
    assert peer.only(wire.ERROR).meta["message"] == expected
    peer.say(wire.MUTATE, {"table": "nope"}, [NO_KEYS, np.zeros(0), NO_KEYS])
    assert isinstance(errors.from_meta(peer.only(wire.ERROR).meta), RuntimeError)


@in_loop
async def test_invalid_group_is_dropped_and_the_others_are_inserted():
    service = make_service()
    writer = Writer(service)
    writer.write(
        [0, 1],
        writer.group([[0]]),
        writer.group([[0]], name="nope"),
        writer.group([[0], [5]]),
        writer.group([[1]], priority=np.nan),
        writer.group([[1]], priority=-1),
        writer.group([[1]]),
    )
    *refused, confirmed = writer.take()
    assert [frame.meta["confirmed"] for frame in refused] == [2, 4, 5, 6]
    assert {frame.meta["code"] for frame in refused} == {"invalid_argument"}
    messages = [frame.meta["message"] for frame in refused]
    assert messages[0] == (
        "Unable to create item in table 'nope' since the table could not be found."
    )
    assert "step 5" in messages[1]
    assert "Priority nan for table 't'" in messages[2]
    assert "Priority -1.0" in messages[3]
    assert confirmed.meta == {"confirmed": 7}
    assert service.info()[0]["current_size"] == 2


@in_loop
async def test_signature_is_checked_in_reverbs_words():
    signature = {"a": ArraySpec((2, 3), np.float32), "b": ArraySpec((None,), np.int64)}
    service = make_service(table(signature=signature))
    writer = Writer(service)
    writer.write(
        [0, 1, 2],
        writer.group([[0, 1]]),
        writer.group([[0]]),
        writer.group(
            [[0, 1, 2]], columns=[[0, 0, False], [1, 1, False]], lengths=[2, 1]
        ),
        writer.group([[0, 1]], columns=[[0, 0, False]]),
        writer.group([[0, 1]], columns=[[1, 0, False], [0, 0, False]]),
    )
    *refused, _ = writer.take()
    start = (
        "Unable to create item in table 't' since the provided trajectory is "
        "inconsistent with the table signature. The "
    )
    assert [frame.meta["message"].splitlines()[0] for frame in refused] == [
        start + "table expects column 0 to be a float [2,3] tensor but got a float "
        "[1,3] tensor.",
        start + "trajectory has 1 columns but the table signature has 2 columns.",
        start + "table expects column 0 to be a float [2,3] tensor but got a int64 [2] "
        "tensor.",
    ]
    assert service.info()[0]["current_size"] == 2


@in_loop
async def test_insert_waits_for_samples_and_goes_on():
    # Inserts stop at 3 more than samples.
    service = make_service(table(limiter=rate_limiters.RateLimiter(1, 1, 0, 3)))
    writer = Writer(service)
    writer.insert(5)
    assert writer.only(wire.CONFIRMED).meta == {"confirmed": 3}
    peer = sampler(service)
    sample(peer, 1)
    await turns()
    assert writer.only(wire.CONFIRMED).meta == {"confirmed": 4}
    sample(peer, 1)
    await turns()
    assert writer.only(wire.CONFIRMED).meta == {"confirmed": 5}
    assert rows_in_use(service) == 5


@in_loop
async def test_samples_wait_for_inserts_and_come_as_they_can():
    service = make_service(table(limiter=rate_limiters.RateLimiter(2, 2, 0, 100)))
    first, second = sampler(service), sampler(service)
    sample(first, 3)
    sample(second, 2)
    writer = Writer(service)
    writer.insert(1)
    await turns()
    assert first.take() == second.take() == []
    writer.insert(1)
    await turns()
    frames = first.take()
    assert [len(frame.arrays[0]) for frame in frames] == [3]
    (frame,) = second.take()
    assert (len(frame.arrays[0]), frame.meta["done"]) == (1, False)
    writer.insert(1)
    await turns()
    assert second.only(wire.SAMPLES).meta["done"] is True


@in_loop
async def test_those_who_wait_take_turns():
    service = make_service(table(limiter=rate_limiters.RateLimiter(1, 1, 0, 1000)))
    peers = [sampler(service) for _ in range(3)]
    for peer in peers:
        sample(peer, 100)
    writer = Writer(service)
    for _ in range(9):
        writer.insert(1)
        await turns(5)
    assert [len(peer.take()) for peer in peers] == [3, 3, 3]


@in_loop
async def test_timeout_ends_a_request_after_what_there_is():
    service = make_service(table(max_times_sampled=1))
    Writer(service).insert(2)
    peer = sampler(service)
    sample(peer, 5, timeout=0, request=1)
    sample(peer, 5, timeout=30, request=2)
    sample(peer, 1, timeout=30, request=3)
    await turns()
    some, end = peer.take()
    assert (len(some.arrays[0]), some.meta["done"]) == (2, False)
    assert end.meta == {"request": 1, "done": True, "end": "timeout"}
    assert end.arrays == []
    await asyncio.sleep(0.045)
    assert peer.only(wire.SAMPLES).meta["request"] == 2
    Writer(service).insert(1)
    await asyncio.sleep(0.05)
    last = peer.only(wire.SAMPLES)
    assert (last.meta["request"], last.meta["done"], len(last.arrays)) == (3, True, 7)


@in_loop
async def test_slots_are_not_reused_before_their_reader_releases_them():
    service = make_shared_service(table(max_size=1))
    writer = Writer(service)
    peer = sampler(service, shared=True)
    writer.insert(1)
    sample(peer, 1)
    slots = peer.only(wire.SAMPLES).arrays[5]
    assert slots.dtype == np.int32
    for _ in range(5):
        writer.insert(1)
    (store,) = service.stores.values()
    assert store.read(1, slots) == 0
    assert store.rows_in_use == 2
    peer.say(wire.RELEASE, {"release": 1})
    assert store.rows_in_use == 1
    sample(peer, 1)
    peer.take()
    sample(peer, 1, release=1)
    peer.take()
    peer.say(wire.RELEASE, {"release": 2})
    assert peer.only(wire.ERROR).meta["code"] == "protocol"
    assert not peer.is_open
    assert store.rows_in_use == 1


@in_loop
async def test_release_does_not_wait_behind_a_request_that_waits():
    service = make_shared_service(table(max_times_sampled=1))
    Writer(service).insert(1)
    peer = sampler(service, shared=True)
    sample(peer, 1)
    sample(peer, 1)
    assert rows_in_use(service) == 1
    peer.say(wire.RELEASE, {"release": 1})
    assert rows_in_use(service) == 0


@in_loop
async def test_end_of_a_session_frees_what_it_held():
    service = make_shared_service(
        table(), table("q", rate_limiters.RateLimiter(1, 1, 0, 1), max_size=1)
    )
    writer = Writer(service)
    writer.write(range(5), writer.group([[0], [1]], name="q"))
    peer = sampler(service, shared=True)
    sample(peer, 2, name="t")
    sample(peer, 1, name="q")
    assert rows_in_use(service) == 5
    writer.session.close()
    assert rows_in_use(service) == 1
    peer.session.close()
    await turns()
    assert not service.tables["t"].samplers
    assert not service.tables["q"].inserters
    assert service.sessions == set()
    other = sampler(service)
    other.say(wire.RESET, {"table": "q"})
    other.only(wire.OK)
    assert rows_in_use(service) == 0


@in_loop
async def test_steps_are_kept_for_as_long_as_the_writer_says():
    service = make_service()
    writer = Writer(service)
    writer.write(range(10), keep=4)
    assert rows_in_use(service) == 6
    writer.write([12, 15], writer.group([[4, 9], [12, 15]]), keep=15)
    assert rows_in_use(service) == 4
    writer.write([], writer.group([[14]]))
    assert "step 14" in writer.take()[2].meta["message"]


@in_loop
async def test_steps_can_precede_their_items_in_messages_of_their_own():
    service = make_service()
    writer = Writer(service)
    for start in (0, 3, 6):
        writer.write(range(start, start + 3))
        assert writer.only(wire.CONFIRMED).meta == {"confirmed": 0}
    writer.write([9], writer.group([np.arange(10)]), keep=10)
    assert writer.only(wire.CONFIRMED).meta == {"confirmed": 1}
    peer = sampler(service)
    sample(peer, 1)
    assert peer.only(wire.SAMPLES).arrays[6].tolist() == [[*range(10)]]


@in_loop
async def test_items_are_refused_once_if_there_was_no_memory_for_earlier_steps(
    monkeypatch,
):
    service = make_service()
    writer = Writer(service)
    writer.write([0, 1])
    (store,) = service.stores.values()

    def refuse(count):
        raise errors.ResourceExhaustedError("no memory")

    with monkeypatch.context() as context:
        context.setattr(store, "allocating", refuse)
        writer.write([2, 3])
    writer.write([4, 5])
    assert [frame.kind for frame in writer.take()] == [wire.CONFIRMED] * 3
    writer.write([6], writer.group([np.arange(7)]), keep=7)
    refused, confirmed = writer.take()
    assert refused.meta["code"] == "resource_exhausted"
    assert refused.meta["confirmed"] == confirmed.meta["confirmed"] == 1
    assert rows_in_use(service) == 0
    writer.write([7, 8], writer.group([[7, 8]]))
    assert writer.only(wire.CONFIRMED).meta == {"confirmed": 2}


@in_loop
async def test_step_that_is_sent_again_replaces_the_first():
    service = make_service()
    writer = Writer(service)
    writer.write([0, 1], writer.group([[0, 1]]))
    steps = np.array([1, 2])
    group, arrays = writer.group([[0, 1, 2]])
    a = np.full((2, 3), 7, np.float32)
    meta = {"keep": 0, "episode": 0, "groups": [group]}
    writer.say(wire.WRITE, meta, [steps, a, steps + 100, *arrays])
    peer = sampler(service)
    service.tables["t"].table.mutate(NO_KEYS, np.zeros(0), np.zeros(1, np.uint64))
    sample(peer, 1)
    np.testing.assert_array_equal(peer.only(wire.SAMPLES).arrays[6], [[0, 101, 102]])


@in_loop
async def test_writer_that_comes_again_inserts_nothing_twice():
    service = make_service(table(limiter=rate_limiters.RateLimiter(1, 1, 0, 3)))
    lost = Writer(service, writer_id="8")
    lost.insert(5)
    again = Writer(service, writer_id="8")
    assert not lost.is_open
    assert again.welcome["confirmed"] == 3
    again.seq = 1  # It has not heard of any but the first.
    again.write(range(5), again.group([[1], [2], [3], [4]]))
    peer = sampler(service)
    sample(peer, 5)
    await turns()
    assert again.take()[-1].meta == {"confirmed": 5}
    info = service.info()[0]
    assert info["rate_limiter_info"]["insert_stats"]["completed"] == 5
    assert Writer(service, writer_id="9").welcome["confirmed"] == 0


@in_loop
async def test_writers_survive_in_checkpoints_and_the_idle_are_forgotten(monkeypatch):
    service = make_service()
    Writer(service, writer_id="8").insert(2)
    restored = make_service()
    restored.restore_writers(service.writers_state())
    writer = Writer(restored, writer_id="8")
    assert writer.welcome["confirmed"] == 2
    monkeypatch.setattr("tfrl.replay_service.engine.serving.service._MAX_WRITERS", 3)
    for writer_id in "abcdef":
        Writer(restored, writer_id=writer_id).session.close()
    assert list(restored.writers) == ["8", "e", "f"]


@in_loop
async def test_episodes_of_two_writers_are_not_the_same():
    service = make_service()
    for _ in range(2):
        writer = Writer(service)
        writer.insert(3, episode=0)
        writer.insert(1, episode=1)
    assert service.info()[0]["num_episodes"] == 4


@in_loop
async def test_mutate_updates_and_deletes():
    service = make_service(table(sampler=selectors.MaxHeap()))
    Writer(service).insert(3)
    peer = sampler(service)
    sample(peer, 1)
    key = peer.only(wire.SAMPLES).arrays[0]
    peer.say(wire.MUTATE, {"table": "t"}, [key, np.array([0.5]), NO_KEYS])
    peer.only(wire.OK)
    sample(peer, 1)
    other = peer.only(wire.SAMPLES).arrays[0]
    assert other != key
    peer.say(wire.MUTATE, {"table": "t"}, [key, np.array([np.inf]), NO_KEYS])
    assert peer.only(wire.ERROR).meta["code"] == "invalid_argument"
    peer.say(wire.MUTATE, {"table": "t"}, [NO_KEYS, np.zeros(0), other])
    peer.only(wire.OK)
    assert rows_in_use(service) == 2


@in_loop
async def test_slow_reader_stops_what_is_made_for_it():
    service = make_service()
    Writer(service).insert(1)
    peer = sampler(service)
    peer.session.pause()
    sample(peer, 1000)
    peer.say(wire.INFO, {})
    await turns()
    assert peer.take() == []
    peer.session.resume()
    await turns()
    assert sum(len(f.arrays[0]) for f in peer.take() if f.arrays) == 1000


@in_loop
async def test_client_that_does_not_wait_for_answers_is_not_read(monkeypatch):
    monkeypatch.setattr("tfrl.replay_service.engine.serving.sessions._READ_AHEAD", 1000)
    service = make_service()
    peer = sampler(service)
    sample(peer, 1)
    for _ in range(40):
        peer.say(wire.INFO, {})
    assert peer.reads is True
    for _ in range(100):
        peer.say(wire.INFO, {})
    assert peer.reads is False
    Writer(service).insert(1)
    # How many are answered in a turn depends on the time that they take.
    await turns(20_000)
    assert peer.reads is True
    assert len(peer.take()) == 141


@in_loop
async def test_large_requests_leave_others_their_turn():
    service = make_service()
    Writer(service).insert(1)
    big, small = sampler(service), sampler(service)
    sample(big, 1_000_000)
    sample(small, 1)
    small.only(wire.SAMPLES)
    assert sum(len(f.arrays[0]) for f in big.take()) < 10_000


@in_loop
async def test_many_messages_leave_others_their_turn():
    peer = Peer(make_service())
    peer.take()
    message = b"".join(wire.encode(wire.INFO, {}))
    for number in range(1000):
        peer.session.receive(message, at_once=number < 3)
    assert len(peer.take()) == 3
    turns_taken = 0
    while len(peer.frames) < 997:
        await asyncio.sleep(0)
        turns_taken += 1
    assert turns_taken > 1


@in_loop
async def test_data_of_large_items_goes_in_several_messages(monkeypatch):
    monkeypatch.setattr(
        "tfrl.replay_service.engine.serving.sample_requests._LARGE", 100
    )
    service = make_service(table(max_times_sampled=1))
    writer = Writer(service)
    writer.insert(12)
    peer = sampler(service)
    sample(peer, 10)
    await turns()
    frames = peer.take()
    assert [len(frame.arrays[0]) for frame in frames] == [5, 5]
    np.testing.assert_array_equal(
        np.concatenate([f.arrays[6] for f in frames]).ravel(), range(10)
    )
    assert rows_in_use(service) == 2


@in_loop
async def test_a_wait_for_others_that_work_is_not_told_of(monkeypatch):
    service = make_service(table(limiter=rate_limiters.MinSize(3)))
    peer = sampler(service)
    sample(peer, 1)
    service.start()
    Writer(service).insert(1)
    peer.session.waiting_since -= 11
    service._tick()
    assert peer.take() == []
    monkeypatch.setattr(service_lib, "_LONG_WAIT", 0.0)  # Nothing works since then.
    service._tick()
    assert "holds 1 of the 3" in peer.only(wire.WAITING).meta["message"]
    service.stop()


@in_loop
async def test_long_wait_is_told_of():
    service = make_service(table(limiter=rate_limiters.MinSize(3)))
    peer = sampler(service)
    sample(peer, 1)
    service.start()
    service._tick()
    assert peer.take() == []
    peer.session.waiting_since -= 11
    service._tick()
    assert "holds 0 of the 3" in peer.only(wire.WAITING).meta["message"]
    service._tick()
    assert peer.take() == []
    service.stop()
    assert not peer.is_open


@pytest.mark.parametrize(
    ("meta", "change"),
    [
        ({"groups": 3}, None),
        ({"groups": [3]}, None),
        ({"keep": -1}, None),
        ({"keep": "1"}, None),
        ({"schema": [["object", [3], "a"]]}, None),
        ({"schema": [["float32", [-3], "a"]]}, None),
        ({"schema": [["float32", [4], "a"], ["int64", [], "b"]]}, None),
        ({}, lambda arrays: arrays.pop()),
        ({}, lambda arrays: arrays.__setitem__(0, np.array([1, 0]))),
        ({}, lambda arrays: arrays.__setitem__(0, np.array([-1, 0]))),
        ({}, lambda arrays: arrays.__setitem__(3, np.zeros((1, 9), np.int64))),
        ({}, lambda arrays: arrays.__setitem__(5, np.zeros(1, np.int64))),
        ({}, lambda arrays: arrays.__setitem__(4, np.ones(2))),
    ],
)
@in_loop
async def test_malformed_write_ends_the_session(meta, change):
    service = make_service()
    writer = Writer(service)
    group, arrays = writer.group([[0, 1]])
    arrays = [np.arange(2), np.zeros((2, 3), np.float32), np.arange(2), *arrays]
    if change is not None:
        change(arrays)
    full = {"keep": 0, "episode": 0, "groups": [group], "schema": SCHEMA}
    writer.say(wire.WRITE, full | meta, arrays)
    assert writer.only(wire.ERROR).meta["code"] == "protocol"
    assert not writer.is_open
    assert rows_in_use(service) == 0
    Writer(service).insert(1)


@pytest.mark.parametrize("timeout", [float("nan"), 0.5, 10**30, None, -2])
@in_loop
async def test_malformed_sample_ends_the_session(timeout):
    peer = sampler(make_service())
    sample(peer, 1, timeout=timeout)
    assert peer.only(wire.ERROR).meta["code"] == "protocol"


@in_loop
async def test_schemas_take_no_memory_before_there_are_steps():
    service = make_service()
    for size in range(300):
        writer = Writer(service)
        writer.schema = [["uint8", [2**61 - size], "a"]]
        meta = {"keep": 0, "episode": 0, "groups": [], "schema": writer.schema}
        empty = np.zeros((0, 2**61 - size), np.uint8)
        writer.say(wire.WRITE, meta, [np.zeros(0, np.int64), empty])
        writer.only(wire.CONFIRMED)
    assert service.stores == {}
    group, arrays = writer.group([[0]], columns=[[0, 0, False]])
    meta["groups"] = [group]
    writer.say(wire.WRITE, meta, [np.zeros(0, np.int64), empty, *arrays])
    refused, _ = writer.take()
    assert "that were never sent" in refused.meta["message"]


@in_loop
async def test_before_the_greeting_only_short_messages_are_accepted():
    service = make_service()
    greeting = {"protocol": wire.PROTOCOL, "role": "control", "secret": service.secret}
    hello = b"".join(wire.encode(wire.HELLO, greeting | {"more": "x" * 64_000}))
    for padding, code in ((0, None), (wire.MAX_GREETING_BYTES, "protocol")):
        peer = silent(service)
        peer.session.receive(hello[:-2] + b" " * padding + hello[-2:])
        frame = peer.take()[0]
        assert frame.meta.get("code") == code
    assert "expected at most 65536" in frame.meta["message"]
    assert not peer.is_open


@in_loop
async def test_after_the_greeting_json_is_limited_but_arrays_are_not():
    service = make_service()
    peer = Peer(service)
    peer.take()
    keys = np.arange(10**6, dtype=np.uint64)
    peer.say(wire.MUTATE, {"table": "t"}, [keys, np.ones(10**6), NO_KEYS])
    while not peer.frames:
        await turns(1)
    peer.only(wire.OK)
    peer.say(wire.INFO, {"more": [0] * wire.MAX_JSON_VALUES})
    assert "values in the JSON" in peer.only(wire.ERROR).meta["message"]
    assert not peer.is_open


@in_loop
async def test_too_many_sessions_without_a_greeting_end_the_oldest(monkeypatch):
    monkeypatch.setattr("tfrl.replay_service.engine.serving.service._MOST_LOCAL", 2)
    service = make_service()
    peers = [silent(service) for _ in range(2)]
    greeted = Peer(service)  # The third ends the first, and is no newcomer afterwards.
    assert [peer.is_open for peer in peers] == [False, True]
    assert "without sending a greeting" in peers[0].only(wire.ERROR).meta["message"]
    silent(service)
    assert greeted.is_open
    assert peers[1].is_open
    assert len(service.newcomers) == 2
    peers[1].session.close()
    assert len(service.newcomers) == 1


@in_loop
async def test_all_sessions_together_read_ahead_up_to_a_limit(monkeypatch):
    monkeypatch.setattr("tfrl.replay_service.engine.serving.sessions._ALL_AHEAD", 100)
    service = make_service()
    peers = [sampler(service) for _ in range(3)]
    for peer in peers:
        sample(peer, 1)
        peer.say(wire.INFO, {"more": "x" * 40})
    assert [peer.reads for peer in peers] == [True, False, False]
    peers[0].session.close()
    Writer(service).insert(1)
    await turns()
    assert [peer.reads for peer in peers[1:]] == [True, True]
    assert service.kept == 0


@pytest.mark.slow
@in_loop
async def test_items_that_wait_do_not_hold_their_message():
    service = make_service(table(limiter=rate_limiters.RateLimiter(1, 1, 0, 1)))
    writer = Writer(service)
    group, arrays = writer.group([[0], [1]])
    steps = [np.arange(2), np.zeros((2, 3), np.float32), np.arange(2)]
    meta = {"keep": 0, "episode": 0, "groups": [group], "schema": SCHEMA}
    message = np.frombuffer(
        b"".join(wire.encode(wire.WRITE, meta, [*steps, *arrays])), np.uint8
    )
    held = weakref.ref(message)
    writer.session.receive(message.data)
    del message
    assert writer.only(wire.CONFIRMED).meta == {"confirmed": 1}
    gc.collect()
    assert held() is None


@pytest.mark.parametrize(
    "meta",
    [
        {"schema": [["x" * 10**5, [3]]]},
        {"schema": [[[["int64"]] * 100, [3]]]},
        {"schema": [["int64", [1] * 1000]]},
        {"schema": [["int64", []]] * 4001},
        {"keep": "x" * 10**5},
        {"keep": int("9" * 4000)},
    ],
)
@in_loop
async def test_fields_of_any_size_are_refused_in_a_few_words(meta):
    writer = Writer(make_service())
    group, arrays = writer.group([[0]])
    full = {"keep": 0, "episode": 0, "groups": [group], "schema": SCHEMA}
    writer.say(wire.WRITE, full | meta, arrays)
    frame = writer.only(wire.ERROR)
    assert frame.meta["code"] == "protocol"
    assert len(frame.meta["message"]) < 500


@pytest.mark.parametrize(
    "group",
    [
        {"table": "x" * 10**5},
        {"lengths": [1] * 10**4},
        {"lengths": [[]] * 10**4},
        {"columns": [[0, 0, False]] * 10**4},
        {"columns": [["x" * 10**5, 0, False]]},
        {"columns": [[[[]], 0, False]] * 10**4},
    ],
)
@in_loop
async def test_groups_of_any_size_are_refused_in_a_few_words(group):
    writer = Writer(make_service())
    writer.insert(1)
    writer.take()
    meta, arrays = writer.group([[0]])
    more = {"keep": 0, "episode": 0, "groups": [meta | group]}
    steps = [np.zeros(0, np.int64), np.zeros((0, 3), np.float32), np.zeros(0, int)]
    writer.say(wire.WRITE, more, [*steps, *arrays])
    frame = writer.take()[0]
    assert frame.kind == wire.ERROR
    assert len(frame.meta["message"]) < 500


@in_loop
async def test_random_bytes_harm_nobody():
    service = make_service()
    rng = random.Random(0)
    messages = []
    writer = Writer(service)
    group, arrays = writer.group([[0, 1]])
    arrays = [np.arange(2), np.zeros((2, 3), np.float32), np.arange(2), *arrays]
    meta = {"keep": 0, "episode": 0, "groups": [group], "schema": SCHEMA}
    messages.append(b"".join(wire.encode(wire.WRITE, meta, arrays)))
    meta = {"table": "t", "num": 3, "timeout_ms": 0, "request": 1, "release": 0}
    messages.append(b"".join(wire.encode(wire.SAMPLE, meta)))
    keys = [np.zeros(2, np.uint64), np.ones(2), NO_KEYS]
    messages.append(b"".join(wire.encode(wire.MUTATE, {"table": "t"}, keys)))
    for _ in range(1500):
        peer = Peer(service, "writer")
        message = bytearray(rng.choice(messages))
        for _ in range(rng.randint(1, 4)):
            message[rng.randrange(len(message))] = rng.randrange(256)
        if rng.random() < 0.3:
            del message[rng.randrange(len(message)) :]
        peer.session.receive(bytes(message))
        assert [frame.meta.get("code") for frame in peer.take()].count("internal") == 0
        peer.session.close()
    assert service.sessions == {writer.session}
    assert len(service.stores) < 200
    size = service.info()[0]["current_size"]
    assert rows_in_use(service) <= 2 * size
    writer.insert(1)
    assert writer.only(wire.CONFIRMED)
