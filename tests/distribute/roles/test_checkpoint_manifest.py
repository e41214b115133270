"""Which checkpoints of a run belong together."""

import json

import pytest

from tfrl.distribute.roles import checkpoint_manifest


def test_a_manifest_names_the_checkpoints_and_what_has_become_of_them(tmp_path):
    path = tmp_path / "manifest.json"
    directories = [tmp_path / f"shard_{number}" for number in range(4)]
    assert checkpoint_manifest.describe(path, directories) is None
    for directory, names in zip(directories, ["ab", "ab", "", "a"], strict=True):
        for name in names:
            (directory / name).mkdir(parents=True)
            (directory / name / "DONE").touch()
    # The write of this one was interrupted.
    (directories[0] / "c").mkdir()
    saved = [str(directories[0] / "b"), str(directories[1] / "a"), None]
    checkpoint_manifest.WriteManifest(path, lambda: 1234, lambda: saved).on_checkpoint(
        "ckpt-1234"
    )
    assert json.loads(path.read_text()) == {
        "iteration": 1234,
        "learner": "ckpt-1234",
        "shards": saved,
    }
    assert list(tmp_path.glob("*.tmp")) == []
    # A shard may be new.
    assert checkpoint_manifest.describe(path, directories) == (
        "Resuming from iteration 1,234; replay server 0 from b; replay server 1 from "
        "b, newer than the learner's checkpoint; replay server 2 empty, for want of a "
        f"checkpoint in {directories[2]}; replay server 3 from a, newer than the "
        "learner's checkpoint."
    )


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b'{"iteration": 12',
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"iteration": 12}',
        b'{"iteration": [], "shards": []}',
        b'{"iteration": 12, "shards": [7]}',
        b'{"iteration": 12, "shards": 7}',
    ],
)
def test_a_damaged_manifest_is_named_and_not_needed(damaged, tmp_path):
    path = tmp_path / "manifest.json"
    path.write_bytes(damaged)
    said = checkpoint_manifest.describe(path, [tmp_path / "replay_server"])
    assert said.startswith(f"{path}: got ")
    assert "resumes from its newest checkpoints" in said
