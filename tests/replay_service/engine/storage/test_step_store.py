import collections
import contextlib
import errno
import mmap
import os

import ml_dtypes
import numpy as np
import pytest

from tfrl.replay_service import errors
from tfrl.replay_service.engine.storage import arena, memory, step_store

posix = pytest.mark.skipif(os.name != "posix", reason="needs mappings of files")

CARTPOLE = [("int32", ()), ("float32", (4,)), ("int64", ()), ("float32", ())]


@pytest.fixture(params=[True, False], ids=["shared", "heap"])
def make(request):
    made = []

    def make_store(columns):
        made.append(step_store.StepStore(1, columns, shared=request.param))
        return made[-1]

    yield make_store
    for store in made:
        store.close()


@pytest.fixture
def store(make):
    return make(CARTPOLE)


def test_steps_are_read_as_they_were_written(make):
    columns = [
        ("float32", (2, 3)),
        ("int64", ()),
        ("bool", (5,)),
        ("bfloat16", (3,)),
        ("complex64", ()),
        ("uint8", (7, 0)),
        ("uint8", (84, 84)),
    ]
    store = make(columns)
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(0, 100, (9, *shape)).astype(
            ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
        )
        for dtype, shape in columns
    ]
    slots = store.allocate(9)
    store.write(slots, arrays)
    order = rng.permutation(9)[:6].reshape(2, 3)
    for column, array in enumerate(arrays):
        read = store.read(column, slots[order])
        assert read.dtype == array.dtype
        np.testing.assert_array_equal(read, array[order])


def test_arrays_may_be_strided_and_read_only(store):
    base = np.arange(80, dtype=np.float32).reshape(10, 8)
    base.flags.writeable = False
    slots = store.allocate(5)
    zeros = [np.zeros(5, dtype) for dtype in ("int32", "int64", "float32")]
    store.write(slots, [zeros[0], base[::2, ::2], zeros[1], zeros[2]])
    np.testing.assert_array_equal(store.read(1, slots), base[::2, ::2])


def test_no_steps_at_all(store):
    none = store.allocate(0)
    assert none.dtype == np.int32
    store.write(none, [np.zeros((0, *shape), dtype) for dtype, shape in CARTPOLE])
    store.retain(none)
    store.release(none)
    assert store.read(1, none.reshape(0, 2)).shape == (0, 2, 4)
    assert store.rows_in_use == 0


def test_what_was_freed_last_is_used_first(store):
    slots = store.allocate(10)
    store.release(slots[2:4])
    store.release(slots[6:8])
    assert sorted(store.allocate(2)) == sorted(slots[6:8])
    assert sorted(store.allocate(3)) == sorted([*slots[2:4], 10])


def test_duplicates_count_each(store):
    (slot,) = store.allocate(1)
    store.retain(np.array([[slot, slot], [slot, slot]]))
    store.release(np.array([slot] * 4))
    assert store.rows_in_use == 1
    store.release(np.array([slot]))
    assert store.rows_in_use == 0


def test_a_slot_freed_by_duplicates_is_free_once(store):
    slots = store.allocate(2)
    store.retain(slots)
    store.release(np.array([slots[1], slots[0], slots[1], slots[0]]))
    assert store.rows_in_use == 0
    assert sorted(store.allocate(3)) == [0, 1, 2]


def test_counts_agree_with_a_naive_model(store):
    rng = np.random.default_rng(3)
    counts = collections.Counter()
    held = []
    for _ in range(400):
        action = rng.integers(3)
        if action == 0 or not held:
            slots = store.allocate(int(rng.integers(0, 20))).tolist()
            assert not set(slots) & set(counts)
            assert len(set(slots)) == len(slots)
        elif action == 1:
            slots = rng.choice(held, int(rng.integers(1, 40))).tolist()
            store.retain(np.array(slots, np.int32))
        else:
            rng.shuffle(held)
            cut = int(rng.integers(len(held) + 1))
            store.release(np.array(held[:cut], np.int32))
            counts.subtract(held[:cut])
            counts = +counts
            held, slots = held[cut:], []
        counts.update(slots)
        held.extend(slots)
        assert store.rows_in_use == len(counts)


@pytest.mark.parametrize("method", ["retain", "release"])
def test_a_free_slot_cannot_be_referred_to(store, method):
    slots = store.allocate(3)
    store.release(slots[:1])
    with pytest.raises(AssertionError, match="without references"):
        getattr(store, method)(slots)
    assert store.rows_in_use == 2
    store.release(slots[1:])
    assert store.rows_in_use == 0


def test_one_release_too_many_changes_nothing(store):
    slots = store.allocate(2)
    with pytest.raises(AssertionError, match="without references"):
        store.release(np.array([slots[0], slots[0], slots[1]]))
    store.release(slots)
    assert store.rows_in_use == 0


def test_another_number_of_steps_than_slots_is_a_bug(store):
    slots = store.allocate(2)
    arrays = [np.zeros((1, *shape), dtype) for dtype, shape in CARTPOLE]
    with pytest.raises(AssertionError, match="as many steps"):
        store.write(slots, arrays)


def test_lack_of_memory_leaves_the_store_as_it_was(store, monkeypatch):
    kept = store.allocate(5)

    def lacking(rows):
        raise errors.ResourceExhaustedError("no memory")

    with monkeypatch.context() as context:
        context.setattr(store._arena, "reserve", lacking)
        with pytest.raises(errors.ResourceExhaustedError):
            store.allocate(1000)
    assert store.rows_in_use == 5
    assert not set(store.allocate(1000).tolist()) & set(kept.tolist())


def test_an_unknown_dtype_is_refused():
    with pytest.raises(ValueError, match="no dtype 'float12'"):
        step_store.StepStore(1, [("float12", ())], shared=False)


def test_bookkeeping_takes_little_beside_images():
    store = step_store.StepStore(1, [("uint8", (84, 84)), ("int32", ())], shared=True)
    for _ in range(40):
        store.allocate(100)
    assert store.nbytes <= 1.1 * store.rows_in_use * 7060
    store.close()


def test_memory_does_not_grow_with_turnover():
    store = step_store.StepStore(1, CARTPOLE, shared=True)
    held = [store.allocate(50) for _ in range(100)]
    before = store.nbytes
    for turn in range(1000):
        store.release(held[turn % 100])
        held[turn % 100] = store.allocate(50)
    assert store.nbytes <= before + 8 * 5000
    store.close()


def test_the_counts_of_steps_without_bytes_are_checked_against_memory(
    make, monkeypatch
):
    store = make([("uint8", (0,))])
    slots = store.allocate(1 << 20)
    monkeypatch.setattr("tfrl.replay_service.engine.storage.memory.available", int)
    with pytest.raises(errors.ResourceExhaustedError, match="not enough memory"):
        store.allocate(1)
    assert store.rows_in_use == len(slots)


@pytest.fixture
def of_numbers():
    return step_store.StepStore(0, [("int64", ())], shared=False)


def add(steps, of_numbers, numbers):
    numbers = np.asarray(numbers, np.int64)
    slots = of_numbers.allocate(len(numbers))
    of_numbers.write(slots, [numbers])
    steps.add(numbers, slots)


def test_any_course_of_additions_and_releases_agrees_with_a_naive_model(of_numbers):
    rng = np.random.default_rng(0)
    steps, model, end = step_store.SentSteps(of_numbers), [], 0
    for _ in range(500):
        if rng.random() < 0.7:
            numbers = end + np.flatnonzero(rng.random(rng.integers(1, 60)) < 0.8)
            if rng.random() < 0.1:  # Some are sent again, as after a lost connection.
                numbers = np.union1d(numbers, rng.choice(model, 3) if model else [])
            if len(numbers):
                add(steps, of_numbers, numbers)
                model = sorted({*model, *numbers.tolist()})
                end = model[-1] + 1
        else:
            keep = int(rng.integers(max(end - 200, 0), end + 10))
            for _ in steps.forgetting(keep):
                pass
            model = [number for number in model if number >= keep]
        assert len(steps) == len(model) == of_numbers.rows_in_use
        refs = np.array([model, model[::-1]], np.int64)
        assert (of_numbers.read(0, steps.slots(refs)) == refs).all()
        with pytest.raises(ValueError, match=f"step {end}, which is not available"):
            steps.slots(np.array([end]))
    releasing = steps.close()
    assert len(steps) == 0
    assert not list(releasing)
    assert of_numbers.rows_in_use == 0


def test_room_for_many_steps_is_given_back(of_numbers):
    steps = step_store.SentSteps(of_numbers)
    for start in range(0, 300_000, 1000):
        add(steps, of_numbers, np.arange(start, start + 1000))
    for _ in steps.forgetting(299_999):
        pass
    assert len(steps) == 1 == of_numbers.rows_in_use
    for _ in steps.forgetting(300_000):
        pass
    assert len(steps._numbers) == step_store._LEAST_SENT
    add(steps, of_numbers, [300_000])
    assert of_numbers.read(0, steps.slots(np.array([300_000]))) == 300_000


def _open_files():
    for descriptor in os.listdir("/dev/fd"):
        # The listing itself had a descriptor.
        with contextlib.suppress(OSError):
            yield os.fstat(int(descriptor))


@posix
def test_a_shared_arena_is_mapped_and_another_is_not():
    from tfrl.replay_service.engine.storage import mapped_arena

    shared = step_store.make_arena([4], shared=True)
    assert isinstance(shared, mapped_arena.MappedArena)
    assert isinstance(step_store.make_arena([4], shared=False), arena.HeapArena)
    shared.close()


@posix
def test_a_row_that_can_never_fit_leaves_it_to_the_heap(monkeypatch):
    monkeypatch.setattr(memory, "total", lambda: 16 << 20)
    made = step_store.make_arena([17 << 20], shared=True)
    assert isinstance(made, arena.HeapArena)


@posix
def test_no_mapping_at_all_leaves_it_to_the_heap(monkeypatch):
    refused = []

    def refuse(descriptor, *_):
        refused.append(os.fstat(descriptor))
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    assert isinstance(step_store.make_arena([4], shared=True), arena.HeapArena)
    # Threads of other tests may open and close files of their own meanwhile.
    assert refused
    assert not any(os.path.samestat(refused[0], file) for file in _open_files())
