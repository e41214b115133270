import errno
import json
import logging
import os
import pathlib
import shutil
import threading
import time

import numpy as np
import pytest

from tfrl.replay_service import (
    checkpointers,
    errors,
    item_selectors,
    rate_limiters,
)
from tfrl.replay_service.engine.checkpoints import checkpoint_files, server_checkpoint
from tfrl.replay_service.engine.serving import service
from tfrl.system import files

SCHEMA = (("float32", (3,)), ("int64", ()), ("bfloat16", (2,)), ("uint8", (0,)))
IMAGES = (("uint8", (64, 64)), ("int64", ()))


def options(name, **changes):
    return {
        "name": name,
        "max_size": 100,
        "max_times_sampled": 0,
        "sampler": item_selectors.Prioritized(0.7).to_config(),
        "remover": item_selectors.Fifo().to_config(),
        "rate_limiter": rate_limiters.MinSize(1).to_config(),
        "signature": None,
        **changes,
    }


def make_service(path, tables=None, fallback=None):
    if tables is None:
        tables = [
            options("a"),
            options("b", sampler=item_selectors.MaxHeap().to_config()),
        ]
    made = service.Service(tables, seed=0, shared=False)
    made.checkpointer = checkpointers.DefaultCheckpointer(path, "", fallback)
    return made


def fill(made, table, schema, values, lengths, squeezed=False):
    """Inserts an item for each value, whose steps count up from it."""
    store = made.store(schema)
    columns = [[c, 0, squeezed] for c in range(len(schema))]
    layout = made.layouts.find(store, columns, [lengths])
    for value in values:
        slots = store.allocate(lengths)
        steps = value + np.arange(lengths)
        arrays = [
            np.broadcast_to(
                steps.reshape(-1, *(1 for _ in shape)), (lengths, *shape)
            ).astype(np.int16 if dtype == "bfloat16" else dtype)
            for dtype, shape in schema
        ]
        store.write(slots, arrays)
        # An item that has its steps backwards.
        payloads = made.layouts.add(layout, slots[None, ::-1])
        store.release(slots)
        served = made.tables[table].table
        removed = served.insert(np.array([float(value)]), payloads, np.array([value]))
        made.layouts.remove(removed)


def items(made, table):
    """Returns everything about a table's items, in the order of their insertion."""
    _, arrays = made.tables[table].table.state()
    found = []
    for key, priority, times, (layout, row) in zip(
        arrays["keys"],
        arrays["priorities"],
        arrays["times_sampled"],
        arrays["payloads"],
        strict=True,
    ):
        slots = made.layouts.slots(int(layout), np.array([row]))
        data = made.layouts.get(int(layout)).gather(slots)
        described = [
            (str(array.dtype), array.shape, array.astype(float).tolist())
            for array in data
        ]
        found.append((int(key), float(priority), int(times), described))
    return found


def reset(made, table):
    for payloads in made.tables[table].table.reset():
        made.remove(payloads)


def in_use(made):
    return sorted(store.rows_in_use for store in made.stores.values())


def save(made):
    taken = server_checkpoint.ServerSnapshot(made)
    try:
        taken.copy()
        taken.close()
        path, before = made.checkpointer.path, made.last_checkpoint
        made.last_checkpoint = server_checkpoint.write(taken, path, before)
        return pathlib.Path(made.last_checkpoint)
    finally:
        made.background.add(taken.release())


@pytest.fixture
def filled(tmp_path):
    made = make_service(tmp_path)
    fill(made, "a", SCHEMA, range(10), 2)
    fill(made, "b", SCHEMA, range(20, 25), 1, squeezed=True)
    fill(made, "b", IMAGES, range(30, 34), 3)
    made.tables["a"].table.sample(7)
    # Rows that are free in between are not saved.
    keys = made.tables["a"].table.state()[1]["keys"]
    made.layouts.remove(
        made.tables["a"].table.mutate(
            np.empty(0, np.uint64), np.empty(0), keys[[2, 5, 6]]
        )
    )
    made.restore_writers([["17", 1, 120]])
    return made


def test_a_server_goes_on_where_the_one_before_it_was(filled, tmp_path):
    path = save(filled)
    again = make_service(tmp_path)
    assert server_checkpoint.restore_latest(again) == str(path)
    for table in ("a", "b"):
        assert items(again, table) == items(filled, table)
        assert again.tables[table].table.info() == filled.tables[table].table.info()
    assert in_use(again) == in_use(filled) == [12, 19]
    assert again.writers_state() == filled.writers_state() == [["17", 1, 120]]


def test_the_same_samples_come_after_it(filled, tmp_path):
    save(filled)
    again = make_service(tmp_path)
    server_checkpoint.restore_latest(again)
    for table in ("a", "b"):
        expected = filled.tables[table].table.sample(20)
        got = again.tables[table].table.sample(20)
        np.testing.assert_array_equal(got.keys, expected.keys)
        np.testing.assert_array_equal(got.probabilities, expected.probabilities)


def test_what_was_restored_can_be_removed_and_saved_again(filled, tmp_path):
    save(filled)
    again = make_service(tmp_path)
    server_checkpoint.restore_latest(again)
    save(again)
    third = make_service(tmp_path)
    server_checkpoint.restore_latest(third)
    assert items(third, "b") == items(filled, "b")
    for table in ("a", "b"):
        reset(third, table)
    assert in_use(third) == [0, 0]


def test_an_empty_server_can_be_saved(tmp_path):
    path = save(make_service(tmp_path))
    again = make_service(tmp_path)
    assert server_checkpoint.restore_latest(again) == str(path)
    assert items(again, "a") == []


def test_without_a_checkpoint_a_server_starts_empty(tmp_path):
    assert server_checkpoint.restore_latest(make_service(tmp_path / "none")) is None
    (tmp_path / "something else").mkdir()
    assert server_checkpoint.restore_latest(make_service(tmp_path)) is None


def test_the_server_goes_on_while_it_is_written(filled, tmp_path):
    before = {table: items(filled, table) for table in ("a", "b")}
    taken = server_checkpoint.ServerSnapshot(filled)
    for table in ("a", "b"):
        reset(filled, table)
    fill(filled, "a", SCHEMA, range(50, 90), 2)
    taken.copy()
    fill(filled, "b", IMAGES, range(50, 60), 4)
    taken.close()
    written = []
    writing = threading.Thread(
        target=lambda: written.append(server_checkpoint.write(taken, str(tmp_path)))
    )
    writing.start()
    fill(filled, "b", IMAGES, range(60, 70), 4)
    writing.join(30)
    filled.background.add(taken.release())
    assert in_use(filled) == [80, 80]
    again = make_service(tmp_path)
    assert server_checkpoint.restore_latest(again) == written[0]
    assert {table: items(again, table) for table in ("a", "b")} == before


def test_steps_are_written_and_read_in_pieces(filled, tmp_path, monkeypatch):
    monkeypatch.setattr(server_checkpoint, "_CHUNK", 5000)
    save(filled)
    again = make_service(tmp_path)
    server_checkpoint.restore_latest(again)
    assert items(again, "b") == items(filled, "b")


def test_a_checkpoint_is_named_after_its_time_and_complete(filled, tmp_path):
    path = save(filled)
    assert path.is_absolute()
    assert path.parent == tmp_path
    moment = time.strptime(path.name.split(".")[0], "%Y-%m-%dT%H-%M-%S")
    assert abs(time.mktime(moment) - time.mktime(time.gmtime())) < 3600
    names = {file.name for file in path.iterdir()}
    assert {"DONE", "meta.json"} <= names
    assert set(json.loads((path / "DONE").read_text())["files"]) == names - {"DONE"}


def test_the_last_two_checkpoints_are_kept(filled, tmp_path):
    (tmp_path / "mine").mkdir()
    stale = tmp_path / ".2020-01-01T00-00-00.000000.writing"
    stale.mkdir()
    os.utime(stale, (0, 0))
    recent = tmp_path / ".2021-01-01T00-00-00.000000.writing"
    recent.mkdir()
    first, second, third = save(filled), save(filled), save(filled)
    assert first < second < third
    assert {path.name for path in tmp_path.iterdir()} == {
        second.name,
        third.name,
        "mine",
        recent.name,
    }


FILES = [
    "DONE",
    "meta.json",
    "slots.npy",
    "steps-0-0.npy",
    "steps-0-3.npy",
    "table-0-keys.npy",
]


def truncate(file):
    os.truncate(file, file.stat().st_size // 2)


def remove(file):
    file.unlink()


def flip(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x10
    file.write_bytes(data)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", [truncate, remove, flip])
def test_damage_is_refused(filled, tmp_path, file, damage):
    path = save(filled)
    damage(path / file)
    with pytest.raises(ValueError, match=f"{path.name}: its file .*move these dir"):
        server_checkpoint.restore_latest(make_service(tmp_path))


@pytest.mark.parametrize(
    "content", ["[", "[1]", '{"files": {"meta.json": [1e999, 1]}}', '{"files": [1]}']
)
def test_a_damaged_list_of_files_is_refused(filled, tmp_path, content):
    (save(filled) / "DONE").write_text(content)
    with pytest.raises(ValueError, match="its file DONE cannot be read"):
        server_checkpoint.restore_latest(make_service(tmp_path))


@pytest.mark.parametrize("file", FILES)
def test_the_one_before_a_damaged_one_is_used_loudly(filled, tmp_path, caplog, file):
    save(filled)
    good = save(filled)
    saved = items(filled, "a")
    reset(filled, "a")
    flip(save(filled) / file)
    for _ in range(2):
        [bad] = set(tmp_path.iterdir()) - {good}
        caplog.clear()
        again = make_service(tmp_path)
        with caplog.at_level(logging.WARNING, "tfrl.replay_service"):
            again.last_checkpoint = server_checkpoint.restore_latest(again)
        assert again.last_checkpoint == str(good)
        (record,) = caplog.records
        assert f"{bad} is refused: its file " in record.getMessage()
        assert f"used instead, {good}" in record.getMessage()
        assert items(again, "a") == saved
        flip(save(again) / file)  # Which deletes the bad one, not the good one.


@pytest.mark.parametrize("name", ["run*", "run?", "[r]un1", "run]", "run\\1", "~"])
def test_a_directory_can_have_any_name(tmp_path, name):
    neighbour = make_service(tmp_path / "run1")
    fill(neighbour, "a", SCHEMA, range(3), 2)
    path = save(neighbour)
    made = make_service(tmp_path / name)
    for value in range(3):
        fill(made, "a", SCHEMA, [10 + value], 2)
        last = save(made)
    (
        tmp_path / name / f".2020-01-01T00-00-00.000000{checkpoint_files.UNFINISHED}"
    ).mkdir()
    checkpoint_files.remove_unfinished(str(tmp_path / name))
    again = make_service(tmp_path / name)
    assert server_checkpoint.restore_latest(again) == str(last)
    assert items(again, "a") == items(made, "a")
    assert len(list((tmp_path / name).iterdir())) == 2
    assert list((tmp_path / "run1").iterdir()) == [path]


def test_one_that_was_never_finished_is_left_aside_loudly(filled, tmp_path, caplog):
    partial = tmp_path / ".2100-01-01T00-00-00.000000.writing"
    shutil.copytree(save(filled), partial)
    (partial / "DONE").unlink()
    with caplog.at_level(logging.WARNING, "tfrl.replay_service"):
        assert "2100" not in str(
            server_checkpoint.restore_latest(make_service(tmp_path))
        )
    (record,) = caplog.records
    assert str(partial) in record.getMessage()


def test_a_first_one_that_was_never_finished_is_no_error(tmp_path, caplog):
    (tmp_path / ".2100-01-01T00-00-00.000000.writing").mkdir()
    with caplog.at_level(logging.WARNING, "tfrl.replay_service"):
        assert server_checkpoint.restore_latest(make_service(tmp_path)) is None
    assert "ended while writing it" in caplog.text


def test_a_full_disk_leaves_the_one_before(filled, tmp_path, monkeypatch):
    path = save(filled)

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(errors.ResourceExhaustedError, match="no room for a check"):
        save(filled)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == [path]
    assert in_use(filled) == [12, 19]


def test_a_fallback_serves_while_there_is_none(filled, tmp_path):
    path = save(filled)
    again = make_service(tmp_path / "other", fallback=path)
    assert server_checkpoint.restore_latest(again) == str(path)
    new = save(again)
    third = make_service(tmp_path / "other", fallback=path)
    assert server_checkpoint.restore_latest(third) == str(new)
    with pytest.raises(ValueError, match="nowhere: its file DONE"):
        server_checkpoint.restore_latest(
            make_service(tmp_path / "x", fallback=tmp_path / "nowhere")
        )


def test_a_saved_table_has_to_be_among_the_servers(filled, tmp_path):
    save(filled)
    with pytest.raises(
        ValueError,
        match="Trying to load table 'b' but table was not found in provided list of "
        r"tables\. Available tables: \['a', 'c'\]",
    ):
        server_checkpoint.restore_latest(
            make_service(tmp_path, [options("a"), options("c")])
        )


def test_another_table_starts_empty(filled, tmp_path):
    save(filled)
    again = make_service(tmp_path, [options("c"), options("b"), options("a")])
    server_checkpoint.restore_latest(again)
    assert len(again.tables["c"].table) == 0
    assert items(again, "a") == items(filled, "a")


def test_other_options_count_and_are_told(filled, tmp_path, caplog):
    save(filled)
    lifo = item_selectors.Lifo().to_config()
    again = make_service(tmp_path, [options("a", sampler=lifo), options("b")])
    with caplog.at_level(logging.WARNING, "tfrl.replay_service"):
        server_checkpoint.restore_latest(again)
    assert "Table 'a' had sampler=" in caplog.text
    assert again.tables["a"].table.sample(1).priorities.tolist() == [9.0]


def test_another_version_is_told(filled, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_files, "FORMAT", 2)
    save(filled)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="has format 2, expected 1"):
        server_checkpoint.restore_latest(make_service(tmp_path))


def test_contents_that_do_not_fit_are_told(filled, tmp_path):
    made = save(filled)
    meta = json.loads((made / "meta.json").read_text())
    meta["layouts"][0]["store"] = 7
    shutil.rmtree(made)
    with checkpoint_files.CheckpointWriter(tmp_path) as writer:
        writer.add_array("slots", np.zeros(1, np.int32))
        writer.finish(meta)
    with pytest.raises(ValueError, match="not of this version's form"):
        server_checkpoint.restore_latest(make_service(tmp_path))


def test_no_file_is_unpickled(filled, tmp_path):
    path = save(filled)
    data = np.array([{"an": "object"}], object)
    np.save(path / "slots.npy", data, allow_pickle=True)
    done = json.loads((path / "DONE").read_text())
    file = path / "slots.npy"
    with open(file, "rb") as opened:
        done["files"]["slots.npy"] = [
            file.stat().st_size,
            files.crc32(opened),
        ]
    (path / "DONE").write_text(json.dumps(done))
    with pytest.raises(ValueError, match=r"[Oo]bject"):
        server_checkpoint.restore_latest(make_service(tmp_path))
