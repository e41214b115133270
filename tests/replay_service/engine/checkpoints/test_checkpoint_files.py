"""The directory of the checkpoints, when a server starts."""

import os
import pathlib

import numpy as np
import pytest

from tfrl.replay_service.engine.checkpoints import checkpoint_files


def test_it_is_created_and_left_empty(tmp_path):
    path = tmp_path / "some" / "where"
    checkpoint_files.prepare_directory(str(path))
    checkpoint_files.prepare_directory(str(path))
    assert os.listdir(path) == []


@pytest.mark.parametrize(
    ("below", "reason"),
    [((), "It is a file, not a directory"), (("x", "y"), "Not a directory")],
)
def test_one_that_cannot_be_written_to_is_told(below, reason, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    path = str(file.joinpath(*below))
    with pytest.raises(OSError, match=f"checkpoint_path: cannot .*: {reason}") as told:
        checkpoint_files.prepare_directory(path)
    assert path in str(told.value)


@pytest.mark.skipif(os.name != "posix", reason="locks directories")
def test_what_a_killed_server_was_writing_is_deleted(tmp_path):
    left = tmp_path / ".2026-01-01T00-00-00.000000.writing"
    left.mkdir()
    (left / "a.npy").write_text("")
    (tmp_path / "mine.writing").mkdir()
    with checkpoint_files.CheckpointWriter(tmp_path) as writer:
        writer.add_array("a", np.arange(3))
        [name] = set(os.listdir(tmp_path)) - {left.name, "mine.writing"}
        checkpoint_files.remove_unfinished(str(tmp_path))
        assert set(os.listdir(tmp_path)) == {name, "mine.writing"}
        path = writer.finish({})
    assert set(os.listdir(tmp_path)) == {os.path.basename(path), "mine.writing"}
    checkpoint_files.remove_unfinished(str(tmp_path / "missing"))


@pytest.mark.parametrize("name", ["a.npy", "meta.json", "DONE", ""])
def test_a_checkpoint_with_a_link_is_refused(name, tmp_path):
    with checkpoint_files.CheckpointWriter(tmp_path / "made") as writer:
        writer.add_array("a", np.arange(3))
        path = pathlib.Path(writer.finish({})) / name
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="it is a link, or has links"):
        checkpoint_files.latest(tmp_path / "made")
