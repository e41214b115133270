"""The folder of compiled programs, and what can go wrong with it."""

import contextlib
import os
import pathlib
import stat
import subprocess
import sys

import pytest

from tfrl.compilation import program_store

resource = pytest.importorskip("resource")  # Windows lacks it, and users of files.
PROGRAM = b"instructions" * 100


class Cache:
    """A store in a folder of its own, and the lines that it tells."""

    def __init__(self, folder):
        self.root = folder / "cache" / "programs"
        self.told = []
        self.store = self.open("kind")

    def open(self, kind):
        return program_store.ProgramStore(self.root, kind, self.told.append)

    @property
    def files(self):
        return [path for path in self.root.glob("*/*") if not path.is_dir()]

    @property
    def file(self):
        (path,) = self.files
        return path

    def holds(self, *names):
        return sorted(self.store.read("group")) == sorted(names)


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path)


@pytest.fixture
def stored(cache):
    """A cache with one program."""
    cache.store.write("group", "a.pb", PROGRAM)
    return cache


# --- Reading and writing.


def test_another_process_reads_what_one_has_written(stored):
    assert stored.open("kind").read("group") == {"a.pb": PROGRAM}
    assert program_store.usage(stored.root) == (1, len(PROGRAM))
    assert stored.told == []


def test_programs_of_another_kind_or_group_are_not_read(stored):
    assert stored.open("other processor").read("group") == {}
    assert stored.store.read("other group") == {}


def test_only_the_user_can_enter_the_folders(stored):
    for folder in (stored.root.parent, stored.root, stored.file.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(stored.file.stat().st_mode) == 0o600


def test_a_program_replaces_one_of_the_same_name(stored):
    stored.store.write("group", "a.pb", b"newer")
    assert stored.store.read("group") == {"a.pb": b"newer"}
    assert len(stored.files) == 1


def test_an_empty_cache_has_nothing_and_makes_nothing(cache):
    assert cache.store.read("group") == {}
    assert program_store.usage(cache.root) == (0, 0)
    assert not cache.root.exists()


# --- What is damaged, foreign or not ours.


def flip_byte(path):
    content = bytearray(path.read_bytes())
    content[50] ^= 1
    path.write_bytes(content)


def replace_by_link(path):
    path.rename(path.parents[3] / "elsewhere")
    path.symlink_to(path.parents[3] / "elsewhere")


def replace_by_pipe(path):
    path.unlink()
    os.mkfifo(path)


def replace_by_folder(path):
    path.unlink()
    path.mkdir()
    (path / "inside").touch()


DAMAGES = {
    "a flipped bit": (flip_byte, "damaged"),
    "a missing end": (lambda path: os.truncate(path, 700), "damaged"),
    "an empty file": (lambda path: os.truncate(path, 0), "damaged"),
    "a longer file": (lambda path: path.write_bytes(PROGRAM + b"x"), "damaged"),
    "a link": (replace_by_link, "not a file"),
    "a pipe": (replace_by_pipe, "not a file"),
    "a folder": (replace_by_folder, "not a file"),
    "a file that others may change": (lambda path: path.chmod(0o666), "open to chang"),
    "a file without a checksum": (
        lambda path: path.rename(path.with_name("a.pb")),
        "unknown",
    ),
    "a checksum of something else": (
        lambda path: path.rename(path.with_name("0" * 64 + path.name[64:])),
        "damaged",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_or_foreign_is_deleted_and_told(stored, damage):
    change, reason = DAMAGES[damage]
    change(stored.file)
    assert stored.holds()
    assert list(stored.file.parent.iterdir() if stored.files else []) == []
    (line,) = stored.told
    assert reason in line
    assert stored.holds()
    assert len(stored.told) == 1
    stored.store.write("group", "a.pb", PROGRAM)
    assert stored.holds("a.pb")


def test_a_link_is_deleted_but_not_what_it_leads_to(stored):
    path = stored.file
    replace_by_link(path)
    stored.store.read("group")
    assert (path.parents[3] / "elsewhere").read_bytes() == PROGRAM


@pytest.mark.skipif(os.getuid() != 0, reason="Only root can give files away.")
def test_a_file_of_another_user_is_deleted(stored):
    os.chown(stored.file, 12345, -1)
    assert stored.holds()
    assert "of another user" in stored.told[0]


def test_a_folder_that_others_may_write_to_is_emptied_and_closed(stored):
    folder = stored.file.parent
    folder.chmod(0o777)
    assert stored.holds()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "other users may write" in stored.told[0]


def test_a_folder_that_is_a_link_is_not_entered(stored, tmp_path):
    folder = stored.file.parent
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert stored.holds()
    assert not folder.is_symlink()
    assert len(list((tmp_path / "elsewhere").iterdir())) == 1


def test_the_cache_of_another_user_is_left_alone(stored, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert "another user" in program_store.obstacle(stored.root)
    assert stored.holds()
    stored.store.write("group", "b.pb", PROGRAM)
    assert (len(stored.files), stored.told) == (1, [])


def test_what_is_beside_the_programs_is_not_touched(stored):
    mine = stored.root / "mine"
    mine.mkdir()
    (mine / "file").write_bytes(bytes(2_000_000))
    stored.store.read("group")
    program_store.set_limit(stored.root, 1)
    program_store.empty(stored.root)
    assert (mine / "file").exists()
    assert program_store.usage(stored.root) == (0, 0)


def test_a_cache_in_which_others_may_write_is_left_alone(stored):
    stored.root.chmod(0o775)
    assert "run chmod 700 on it" in program_store.obstacle(stored.root)
    assert stored.holds()
    stored.store.write("group", "b.pb", PROGRAM)
    assert (len(stored.files), stored.told) == (1, [])
    stored.root.chmod(0o700)
    assert stored.holds("a.pb")


# --- Places where nothing can be written.


@contextlib.contextmanager
def full_disk():
    """Lets no file grow beyond 100 bytes, as a disk or a quota that is used up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_no_part_of_a_program(stored):
    with full_disk():
        stored.store.write("group", "b.pb", PROGRAM)
    assert stored.holds("a.pb")
    assert len(stored.files) == 1


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path):
    cache = Cache(tmp_path)
    (tmp_path / "cache").touch()
    cache.store.write("group", "a.pb", PROGRAM)
    assert cache.holds()
    assert "Not a directory" in program_store.obstacle(cache.root)


@pytest.mark.skipif(os.getuid() == 0, reason="Root may write everywhere.")
def test_a_folder_for_reading_only_is_read(stored):
    stored.file.parent.chmod(0o500)
    stored.store.write("group", "b.pb", PROGRAM)
    assert stored.holds("a.pb")
    stored.file.parent.chmod(0o700)


# --- Several processes.


def test_an_unfinished_file_is_not_read_and_deleted_once_it_is_old(stored):
    unfinished = stored.file.with_name(".new-killed")
    unfinished.write_bytes(PROGRAM[:10])
    assert stored.holds("a.pb")
    assert unfinished.exists()  # Its process may be writing.
    os.utime(unfinished, (0, 0))
    assert stored.holds("a.pb")
    assert (unfinished.exists(), stored.told) == (False, [])


def test_an_old_unfinished_folder_does_not_turn_the_cache_off(stored):
    unfinished = stored.file.with_name(".new-folder")
    (unfinished / "inner").mkdir(parents=True)
    os.utime(unfinished, (0, 0))
    assert stored.holds("a.pb")
    assert not unfinished.exists()


def test_what_is_no_folder_of_programs_makes_room_for_one(stored):
    folder = stored.file.parent
    stored.file.unlink()
    folder.rmdir()
    os.mkfifo(folder)
    stored.store.write("group", "a.pb", PROGRAM)
    assert stored.holds("a.pb")
    assert stored.told == [
        f"Cache of compiled programs: deleted {folder}, which was not a folder."
    ]


def test_a_limit_that_is_a_pipe_is_not_waited_for(stored):
    os.mkfifo(stored.root / "limit")
    assert program_store.limit(stored.root) == program_store.DEFAULT_LIMIT
    program_store.set_limit(stored.root, 7)
    assert program_store.limit(stored.root) == 7 * program_store.MEGABYTE


WRITER = """
import pathlib, sys
from tfrl.compilation import program_store
root, name = pathlib.Path(sys.argv[1]), sys.argv[2]
store = program_store.ProgramStore(root, "kind", print)
for i in range(60):
    store.write("group", "common.pb", name.encode() * 50_000)
    store.write("group", f"{name}{i % 5}.pb", bytes([i]) * 50_000)
    for content in store.read("group").values():
        assert len(set(content)) == 1, content[:10]
    if i == 30:
        program_store.empty(root)
"""


def test_processes_that_write_read_and_empty_at_once_see_whole_programs(cache):
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(cache.root), name],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name in "ab"
    ]
    ends = [writer.communicate()[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0], ends
    assert set(ends) == {""}
    assert "common.pb" in cache.store.read("group")


# --- The limit.


def test_the_program_that_was_not_used_for_the_longest_time_goes(cache):
    program_store.set_limit(cache.root, 1)
    for i, name in enumerate("abc"):
        cache.store.write("group", name, bytes([i]) * 300_000)
        os.utime(next(cache.root.glob(f"*/*-{name}")), (i, i))
    cache.store.read("group")  # Uses them all.
    os.utime(next(cache.root.glob("*/*-b")), (50, 50))
    cache.store.write("group", "d", b"d" * 300_000)
    assert cache.holds("a", "c", "d")


def test_a_smaller_limit_deletes_at_once_and_empty_folders_too(stored):
    program_store.set_limit(stored.root, 1)
    stored.open("other").write("group", "a.pb", bytes(2_000_000))
    assert [path.name for path in stored.root.iterdir()] == ["limit"]


def test_a_damaged_limit_is_the_default(stored):
    (stored.root / "limit").write_text("much")
    assert program_store.limit(stored.root) == program_store.DEFAULT_LIMIT
    stored.store.write("group", "b.pb", PROGRAM)
    assert stored.holds("a.pb", "b.pb")


def test_a_process_reads_a_bounded_amount_and_what_was_used_last(cache, monkeypatch):
    monkeypatch.setattr(program_store, "_MOST_READ", 2500)
    for i, name in enumerate("abc"):
        cache.store.write("group", name, bytes([i]) * 1000)
        os.utime(next(cache.root.glob(f"*/*-{name}")), (i, i))
    assert cache.holds("b", "c")


# --- The place.


def place(tmp_path, **variables):
    return program_store.find_root({"HOME": str(tmp_path), **variables})


def test_the_place_is_the_variable_then_xdgs_then_the_homes(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert place(tmp_path) == tmp_path / ".cache" / "tfrl" / "programs"
    xdg = {"XDG_CACHE_HOME": str(tmp_path / "x")}
    assert place(tmp_path, **xdg) == tmp_path / "x" / "tfrl" / "programs"
    assert place(tmp_path, XDG_CACHE_HOME="x") == place(tmp_path)
    chosen = place(tmp_path, **xdg, TFRL_CACHE_DIR="~/here")
    assert chosen == tmp_path / "here" / "programs"


@pytest.mark.parametrize("value", ["", "0", "off"])
def test_the_variable_turns_the_cache_off(tmp_path, value):
    with pytest.raises(program_store.NoPlaceError, match="turns it off"):
        place(tmp_path, TFRL_CACHE_DIR=value)


def test_a_home_of_another_user_is_no_place(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(program_store.NoPlaceError, match="another user"):
        place(tmp_path)


def test_a_user_without_a_home_has_no_place(tmp_path, monkeypatch):
    def refuse():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(pathlib.Path, "home", refuse)
    with pytest.raises(program_store.NoPlaceError, match="set TFRL_CACHE_DIR"):
        place(tmp_path)


def test_a_home_that_does_not_exist_is_no_place(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    with pytest.raises(program_store.NoPlaceError, match="No such file"):
        place(tmp_path)
