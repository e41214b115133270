import errno
import mmap
import os
import sys

import numpy as np
import pytest

from tfrl.replay_service import errors
from tfrl.replay_service.engine.storage import mapped_arena, memory

posix = pytest.mark.skipif(os.name != "posix", reason="needs mappings of files")
GIB = 1 << 30


@pytest.fixture
def mapped():
    made = []

    def make(row_bytes, size=GIB):
        made.append(mapped_arena.MappedArena(row_bytes, size))
        return made[-1]

    yield make
    for arena in made:
        arena.close()


@posix
def test_columns_hold_their_rows_apart(mapped):
    arena = mapped([3, 0, 8])
    arena.reserve(1000)
    for column, value in ((0, 1), (2, 2)):
        arena.columns[column][:1000].view(np.uint8)[:] = value
    assert (arena.columns[0][:1000].view(np.uint8) == 1).all()
    assert (arena.columns[2][:1000].view(np.uint8) == 2).all()
    assert len(arena.columns[1]) == 0
    assert all(offset % mmap.PAGESIZE == 0 for offset in arena.offsets)


@posix
def test_growing_moves_nothing(mapped):
    arena = mapped([16])
    arena.reserve(1)
    column = arena.columns[0]
    column[:1].view(np.uint8)[:] = 7
    arena.reserve(1_000_000)
    assert arena.columns[0] is column
    assert (column[:1].view(np.uint8) == 7).all()
    assert arena.rows >= 1_000_000


@posix
@pytest.mark.parametrize("row_bytes", [[4, 16, 8, 4, 4], [7056], [28224, 4], [1]])
def test_little_more_is_taken_than_is_used(mapped, row_bytes):
    arena = mapped(row_bytes, 8 * GIB)
    used = 0
    while used < 20 << 20:
        used += 300_000
        rows = used // sum(row_bytes)
        arena.reserve(rows)
        overhead = arena.nbytes - rows * sum(row_bytes)
        assert overhead <= max(256 << 10, 0.07 * used)
    assert os.fstat(arena.fd).st_blocks * 512 == arena.nbytes


@posix
def test_lack_of_memory_is_an_error_and_what_was_there_stays(mapped, monkeypatch):
    arena = mapped([1000])
    arena.reserve(10)
    rows, nbytes = arena.rows, arena.nbytes

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    name = "posix_fallocate" if hasattr(os, "posix_fallocate") else "pwrite"
    with monkeypatch.context() as context:
        context.setattr(os, name, full)
        with pytest.raises(errors.ResourceExhaustedError, match="smaller max_size"):
            arena.reserve(100_000)
    assert (arena.rows, arena.nbytes) == (rows, nbytes)
    arena.reserve(100_000)
    assert arena.rows >= 100_000


@posix
def test_without_a_call_that_allocates_zeros_are_written(mapped, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    arena = mapped([1 << 20])
    arena.reserve(3)
    assert not arena.columns[0][:3].view(np.uint8).any()
    assert os.fstat(arena.fd).st_blocks * 512 >= 3 << 20


@posix
def test_more_rows_than_fit_are_refused(mapped):
    arena = mapped([1 << 20], 64 << 20)
    assert 60 <= arena.capacity < 64
    with pytest.raises(errors.ResourceExhaustedError, match="more than the"):
        arena.reserve(64)


@posix
def test_a_refused_size_is_halved_and_some_left_for_others(monkeypatch):
    real = mmap.mmap

    def limited(fd, size, *args):
        if size > GIB:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        return real(fd, size, *args)

    monkeypatch.setattr(mmap, "mmap", limited)
    arena = mapped_arena.MappedArena([4], 8 * GIB)
    assert arena.size == GIB // 2 == os.fstat(arena.fd).st_size
    arena.close()


@posix
def test_a_temporary_file_serves_where_there_are_none_in_memory(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    arena = mapped_arena.MappedArena([4], 64 << 20)
    arena.reserve(10)
    arena.columns[0][:10].view(np.int32)[:] = np.arange(10)
    with pytest.raises(OSError, match="Bad file"):
        os.write(arena.fd, b"readers cannot write")
    assert np.frombuffer(os.pread(arena.fd, 40, 0), np.int32).tolist() == [*range(10)]
    assert os.fstat(arena.fd).st_nlink == 0
    arena.close()


@posix
def test_descriptors_are_not_inherited_and_are_closed(mapped):
    arena = mapped([4])
    fd = arena.fd
    assert not os.get_inheritable(fd)
    arena.close()
    assert arena.fd is None
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(fd)


@pytest.mark.skipif(sys.platform != "linux", reason="needs sealed files")
def test_readers_can_neither_truncate_nor_map_for_writing(mapped):
    arena = mapped([4])
    with pytest.raises(OSError, match="Invalid argument"):
        os.ftruncate(arena.fd, 0)
    with pytest.raises(PermissionError):
        os.ftruncate(arena._writable, 0)
    with pytest.raises(PermissionError):
        mmap.mmap(arena.fd, 4096)


@pytest.mark.skipif(sys.platform != "linux", reason="needs files in memory")
def test_readers_cannot_make_the_server_s_memory_grow(mapped):
    arena = mapped([4])
    arena.reserve(10)
    before = os.fstat(arena.fd).st_blocks
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.posix_fallocate(arena.fd, 0, 16 << 20)
    assert os.fstat(arena.fd).st_blocks == before
    assert os.fstat(arena.fd).st_mode & 0o777 == 0o400


holes = pytest.mark.skipif(sys.platform != "linux", reason="needs holes in files")


def blocks(arena):
    """The memory that the file takes, in bytes."""
    return os.fstat(arena.fd).st_blocks * 512


def run(iterator):
    return sum(1 for _ in iterator)


@holes
@pytest.mark.parametrize("row_bytes", [[8, 3000, 0, 5000], [4096], [1, 2], [300_000]])
def test_memory_of_some_rows_is_given_back_and_taken_again(mapped, row_bytes):
    arena = mapped(row_bytes)
    chunk = max(65536 // sum(row_bytes), 1)
    arena.reserve(8 * chunk)
    used = [i for i, size in enumerate(row_bytes) if size]
    for i in used:
        arena.columns[i][: 8 * chunk].view(np.uint8)[:] = 7
    before = arena.nbytes
    # From the middle, so that the rows on both sides come to have no memory.
    absent = set()
    for part in (3, 4, 2):
        sides = part - 1 in absent, part + 1 in absent
        run(arena.giving_back(part * chunk, (part + 1) * chunk, *sides))
        absent.add(part)
        assert blocks(arena) == arena.nbytes
    rows_given = 3 * chunk
    least = sum(
        max(rows_given * row_bytes[i] - 8192, 0)
        for i in used
        if row_bytes[i] * chunk >= 4096
    )
    assert before - arena.nbytes >= least > 0
    for i in used:
        column = arena.columns[i].view(np.uint8).reshape(len(arena.columns[i]), -1)
        assert (column[: 2 * chunk] == 7).all()
        assert (column[5 * chunk : 8 * chunk] == 7).all()
    for part in (3, 2, 4):
        absent.remove(part)
        sides = part - 1 in absent, part + 1 in absent
        run(arena.taking(part * chunk, (part + 1) * chunk, *sides))
        assert blocks(arena) == arena.nbytes
    assert arena.nbytes == before


@holes
def test_large_rows_are_given_back_and_taken_in_slices(mapped):
    arena = mapped([5 << 20])
    arena.reserve(3)
    assert run(arena.giving_back(1, 2, False, False)) == 4
    assert blocks(arena) <= 11 << 20
    assert run(arena.taking(1, 2, False, False)) == 4
    assert blocks(arena) == arena.nbytes >= 15 << 20


@holes
def test_lack_of_memory_is_an_error_when_it_is_taken_again(mapped, monkeypatch):
    arena = mapped([4096])
    arena.reserve(100)
    run(arena.giving_back(10, 90, False, False))
    monkeypatch.setattr(memory, "available", int)
    with pytest.raises(errors.ResourceExhaustedError, match="not enough memory"):
        run(arena.taking(10, 90, False, False))


@holes
def test_all_memory_is_given_back(mapped):
    arena = mapped([8, 3000])
    arena.reserve(10_000)
    assert arena.clear()
    assert (arena.rows, arena.nbytes, blocks(arena)) == (0, 0, 0)
    arena.reserve(10)
    arena.columns[1][:10].view(np.uint8)[:] = 7
    assert blocks(arena) == arena.nbytes


@holes
def test_a_file_that_readers_could_write_to_is_sealed_and_keeps_its_memory(
    mapped, monkeypatch
):
    monkeypatch.setattr(mapped_arena, "_for_readers", lambda fd: fd)
    arena = mapped([4096])
    with pytest.raises(PermissionError):
        mmap.mmap(arena.fd, 4096)
    arena.reserve(100)
    before = blocks(arena)
    assert not arena.gives_back
    assert not arena.clear()
    assert blocks(arena) == before == arena.nbytes
