import os
import uuid

import pytest

from tfrl.system import paths


def test_the_directory_is_made_below_the_identifier(tmp_path):
    path = paths.process_path(tmp_path, "logs", "train")
    assert path == os.path.join(tmp_path, paths.unique_id(), "logs", "train")
    assert os.path.isdir(path)


def test_the_identifier_may_be_left_out_and_empty_parts_are(tmp_path):
    assert paths.process_path(tmp_path, "logs", "", add_uid=False) == os.path.join(
        tmp_path, "logs"
    )


def test_a_tilde_is_the_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert paths.process_path("~/tfrl", add_uid=False) == str(tmp_path / "tfrl")


@pytest.mark.parametrize("name", ["run[1]", "run]", "run*", "run?", "run\\d"])
def test_names_that_tensorflow_takes_for_patterns_are_refused(name):
    if name == "run\\d" and os.sep == "\\":
        pytest.skip("a backslash separates directories")
    with pytest.raises(ValueError, match=r"ckpt_dir '.*run.*': has '.*choose another"):
        paths.refuse_patterns("ckpt_dir", os.path.join("some", name, "checkpoints"))


def test_other_names_are_not_refused(tmp_path):
    paths.refuse_patterns("ckpt_dir", tmp_path / "run (1), {a} +~#!é" / "x.y")


def test_the_identifier_stays_in_a_process_and_can_be_set(monkeypatch):
    monkeypatch.delenv("TFRL_ID", raising=False)
    assert paths.unique_id() == paths.unique_id()
    uuid.UUID(paths.unique_id())
    monkeypatch.setenv("TFRL_ID", "run7")
    assert paths.unique_id() == "run7"
