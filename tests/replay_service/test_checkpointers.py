import gc
import json
import os

import pytest

from tfrl import replay_service
from tfrl.replay_service import checkpointers
from tfrl.replay_service.platform import checkpointers_lib


def test_a_checkpointer_travels_as_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = checkpointers.DefaultCheckpointer("here", "group", "there/x")
    config = json.loads(json.dumps(made.to_config()))
    again = checkpointers.from_config(config)
    assert again.path == str(tmp_path / "here")
    assert again.group == "group"
    assert again.fallback_checkpoint_path == str(tmp_path / "there" / "x")
    assert again.to_config() == config
    assert not (tmp_path / "here").exists()


def test_reverbs_path_has_the_same_classes():
    assert replay_service.platform.checkpointers_lib is checkpointers_lib
    for name in ("CheckpointerBase", "DefaultCheckpointer", "TempDirCheckpointer"):
        assert getattr(checkpointers_lib, name) is getattr(checkpointers, name)


def test_the_path_may_be_a_path(tmp_path):
    assert checkpointers.DefaultCheckpointer(tmp_path).path == str(tmp_path)


def test_no_path_is_refused():
    with pytest.raises(ValueError, match=r"expected a directory.*TempDirCheckpointer"):
        checkpointers.DefaultCheckpointer("")
    with pytest.raises(ValueError, match="expected a directory"):
        checkpointers.from_config({})


@pytest.mark.parametrize(
    "make",
    [
        checkpointers.TempDirCheckpointer,
        pytest.param(checkpointers.default_checkpointer, marks=pytest.mark.slow),
        pytest.param(lambda: checkpointers.from_config(None), marks=pytest.mark.slow),
    ],
)
def test_a_temporary_directory_goes_with_its_checkpointer(make):
    made = make()
    assert isinstance(made, checkpointers.TempDirCheckpointer)
    path = made.to_config()["path"]
    with open(os.path.join(path, "file"), "w"):
        pass
    del made
    gc.collect()
    assert not os.path.exists(path)


@pytest.mark.slow
def test_a_description_of_a_temporary_directory_does_not_own_it():
    made = checkpointers.TempDirCheckpointer()
    again = checkpointers.from_config(made.to_config())
    assert again.path == made.path
    del again
    gc.collect()
    assert os.path.isdir(made.path)


def test_a_fork_leaves_the_directory_alone():
    made = checkpointers.TempDirCheckpointer()
    checkpointers._delete(made.path, os.getpid() + 1)
    assert os.path.isdir(made.path)
