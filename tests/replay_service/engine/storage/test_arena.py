import sys

import numpy as np
import pytest

from tfrl.replay_service import errors
from tfrl.replay_service.engine.storage import arena as arena_lib
from tfrl.replay_service.engine.storage import memory


def test_the_heap_keeps_what_was_written_when_it_grows():
    arena = arena_lib.HeapArena([4, 0])
    arena.reserve(20)
    arena.columns[0][:20].view(np.int32)[:] = np.arange(20)
    arena.reserve(5000)
    assert arena.columns[0][:20].view(np.int32).tolist() == list(range(20))
    assert arena.rows >= 5000
    assert arena.nbytes <= 1.2 * 4 * 5000


@pytest.mark.parametrize("checked", [True, False])
def test_a_heap_without_memory_stays_as_it_was(monkeypatch, checked):
    if not checked:
        monkeypatch.setattr(memory, "available", lambda: None)
    arena = arena_lib.HeapArena([1 << 30])
    with pytest.raises(errors.ResourceExhaustedError, match="smaller max_size"):
        arena.reserve(1 << 24)
    assert arena.rows == 0


def _proc(monkeypatch, tmp_path, meminfo, group):
    (tmp_path / "meminfo").write_text(meminfo)
    for name, text in group.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_GROUP", tmp_path)


def test_memory_left_is_the_machines_with_its_swap(monkeypatch, tmp_path):
    meminfo = "MemTotal: 9000 kB\nMemAvailable:   3000 kB\nSwapFree:   1000 kB\n"
    _proc(monkeypatch, tmp_path, meminfo, {"memory.max": "max\n"})
    assert memory.available() == 4000 * 1024


def test_memory_left_is_the_groups_where_it_has_less(monkeypatch, tmp_path):
    group = {
        "memory.max": "100000000\n",
        "memory.current": "90000000\n",
        "memory.stat": "anon 1\ninactive_file 1000\nactive_file 500\n",
    }
    _proc(monkeypatch, tmp_path, "MemAvailable: 90000000 kB\n", group)
    assert memory.available() == 10_001_500
    with pytest.raises(errors.ResourceExhaustedError, match="10001500 are left"):
        memory.check(1_000_000)


def test_an_unknown_amount_of_memory_is_no_limit(monkeypatch, tmp_path):
    _proc(monkeypatch, tmp_path, "nothing of use", {})
    assert memory.available() is None
    memory.check(1 << 50)


def test_a_heap_of_few_rows_takes_little_and_grows_in_few_steps():
    arena = arena_lib.HeapArena([1000])
    arena.reserve(1)
    assert 1000 <= arena.nbytes <= 4096
    sizes = set()
    for rows in range(1000):
        arena.reserve(rows)
        sizes.add(arena.rows)
    assert len(sizes) < 40
    assert arena.nbytes < 1.2e6
    image = arena_lib.HeapArena([28224])
    image.reserve(1)
    assert image.nbytes == 28224
    empty = arena_lib.HeapArena([0])
    empty.reserve(1000)
    assert empty.nbytes == 0


def test_the_heap_gives_all_memory_back_or_none():
    arena = arena_lib.HeapArena([4, 0])
    arena.reserve(5000)
    assert not arena.gives_back
    assert arena.clear()
    assert (arena.rows, arena.nbytes) == (0, 0)
    arena.reserve(20)
    arena.columns[0][:20].view(np.int32)[:] = np.arange(20)
