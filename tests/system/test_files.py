"""Files are written whole, and no link in a folder is followed."""

import ast
import errno
import os
import pathlib
import re

import pytest

from tests.forks import REPOSITORY
from tfrl.system import files

OUTSIDE = "the user's own\n"


@pytest.fixture
def outside(tmp_path):
    """A file of the user's own, and an empty folder for a run."""
    path = tmp_path / "home" / "own"
    path.parent.mkdir()
    path.write_text(OUTSIDE)
    (tmp_path / "run").mkdir()
    return path


@pytest.mark.parametrize("target", ["own", "missing"])
def test_what_is_written_replaces_a_link(target, outside, tmp_path):
    path = tmp_path / "run" / "report.html"
    for write in (
        lambda: files.write_text(path, "a \udc80", "backslashreplace"),
        lambda: files.write_bytes(path, b"a \\udc80"),
    ):
        path.unlink(missing_ok=True)
        path.symlink_to(outside.with_name(target))
        write()
        assert not path.is_symlink()
        assert path.read_bytes() == b"a \\udc80"
    assert [x.name for x in outside.parent.iterdir()] == ["own"]
    assert outside.read_text() == OUTSIDE
    assert [x.name for x in path.parent.iterdir()] == ["report.html"]


def test_a_new_file_has_the_rights_of_the_users_mask(tmp_path):
    before = os.umask(0o027)
    try:
        files.write_text(tmp_path / "x", "")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


def test_a_file_stays_if_its_new_content_fails(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        files.write_text(path, "\udc80")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("target", ["own", "missing"])
def test_nothing_is_appended_to_a_link(target, outside, tmp_path):
    path = tmp_path / "run" / "metrics.csv"
    path.symlink_to(outside.with_name(target))
    with pytest.raises(
        OSError, match=rf"metrics.csv: it is a link, to '.*{target}', an"
    ):
        files.open_to_append(path)
    assert [x.name for x in outside.parent.iterdir()] == ["own"]
    # Nor if the link comes after the check.
    with pytest.raises(OSError, match="symbolic links"):
        os.close(files.open_plain(str(path), os.O_WRONLY | os.O_CREAT))


def test_nothing_is_appended_to_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is no file"):
        files.open_to_append(tmp_path / "pipe")


def test_a_file_gets_its_own_copy_before_something_is_appended(outside, tmp_path):
    path = tmp_path / "run" / "metrics.csv"
    os.link(outside, path)
    with files.open_to_append(path) as file:
        file.write("more\n")
    assert path.read_text() == f"{OUTSIDE}more\n"
    assert outside.read_text() == OUTSIDE


def test_a_folder_may_be_reached_by_a_link(outside, tmp_path):
    (tmp_path / "logs").symlink_to(tmp_path / "run")
    with files.open_to_append(tmp_path / "logs" / "metrics.csv", "ab") as file:
        file.write(b"1\n")
    files.write_text(tmp_path / "logs" / "text", "2\n")
    found = {x.name: x.read_text() for x in (tmp_path / "run").iterdir()}
    assert found == {"metrics.csv": "1\n", "text": "2\n"}


def test_removing_a_link_leaves_what_it_leads_to(outside, tmp_path):
    for target in (outside, outside.parent, tmp_path / "missing"):
        path = tmp_path / "run" / "policy.old"
        path.symlink_to(target)
        files.remove(path)
        assert not path.is_symlink()
    assert outside.read_text() == OUTSIDE
    files.remove(tmp_path / "run")
    files.remove(tmp_path / "run")
    assert not (tmp_path / "run").exists()


# Calls that write, move or open files in another way than by `files`, and why they may.
PRIVATE = "a path that `files.replacing` or `files.beside` has made"
OWN = "a path that the caller gives, for a file of the caller's own"
WRITERS = {
    "tfrl/acme/tf/savers.py": OWN,
    "tfrl/algorithms/dreamer.py": PRIVATE,
    "tfrl/bandits/agents/examples/v2/trainer.py": OWN,
    "tfrl/compilation/program_cache.py": "TensorFlow's files in memory",
    "tfrl/compilation/program_store.py": "the user's own cache, of mode 0700",
    "tfrl/datasets/minari_files.py": "Minari's own folder of data sets",
    "tfrl/datasets/recordings.py": "the new name replaces a link; `files.remove`",
    "tfrl/distribute/roles/checkpoint_manifest.py": PRIVATE,
    "tfrl/distribute/weights/host_relay.py": "a descriptor without a name",
    "tfrl/loggers/csv.py": PRIVATE,
    "tfrl/loggers/tf_summary.py": "tensorboard, which `run_files.check_links` checks",
    "tfrl/migrate/files.py": "a copy, in a new folder of the user's",
    "tfrl/policies/exporting/formats.py": PRIVATE,
    "tfrl/policies/policy_loader.py": OWN,
    "tfrl/policies/policy_saver.py": OWN,
    "tfrl/policies/saving/distributions.py": OWN,
    "tfrl/replay_service/engine/checkpoints/checkpoint_files.py": "a new folder",
    "tfrl/replay_service/engine/checkpoints/server_checkpoint.py": "a store in memory",
    "tfrl/replay_service/engine/storage/mapped_arena.py": "a new temporary file",
    "tfrl/replay_service/transport/tls.py": "a new temporary folder",
    "tfrl/reports/comparison.py": PRIVATE,
    "tfrl/reports/figures.py": "memory",
    "tfrl/savers/serialization.py": "memory",
    "tfrl/specs/spec_proto.py": OWN,
    "tfrl/system/directory_lock.py": "opened by `files.open_plain`, with its number",
    "tfrl/system/files.py": "the one that the others use",
    "tfrl/system/locked_directories.py": "a new folder",
    "tfrl/system/quiet.py": "a new temporary file",
    "tfrl/train/actor.py": OWN,
    "tfrl/train/learner.py": OWN,
    "tfrl/train/runs/learning_curve.py": PRIVATE,
    "tfrl/train/runs/saved_policies.py": PRIVATE,
    "tfrl/train/sweeps/sweep_checkpoint.py": PRIVATE,
    "tfrl/train/sweeps/sweep_result.py": OWN,
    "tfrl/utils/example_encoding_dataset.py": OWN,
    "tfrl/utils/mp4.py": PRIVATE,
}
CALLS = {
    *("copy", "copy2", "copyfile", "copytree", "create_file_writer", "get_writer"),
    *("hardlink_to", "imwrite", "link", "mkstemp", "NamedTemporaryFile", "rename"),
    *("save_model", "savefig", "savez", "savez_compressed", "symlink", "symlink_to"),
    *("TFRecordWriter", "tofile", "touch", "truncate", "write_bytes", "write_file"),
    "write_text",
}
# The same words for other things: arrays, specs, stores.
NOT_OF_FILES = {"copy", "link"}


CANDIDATES = {*CALLS, *NOT_OF_FILES, "GFile", "move", "open", "replace"}


def _name(called):
    return getattr(called, "attr", None) or getattr(called, "id", None)


def writing_calls(tree):
    """Yields the calls of a source that may write files, other than by `files`."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and _name(node.func) in CANDIDATES):
            continue
        whole = ast.unparse(node.func)
        owner, _, name = whole.rpartition(".")
        if owner == "files":
            continue
        texts = [
            *(x.value for x in node.args if isinstance(x, ast.Constant)),
            *(getattr(x.value, "value", 0) for x in node.keywords if x.arg == "mode"),
        ]
        modes = [x for x in texts if isinstance(x, str) and set(x) <= set("rwaxbt+")]
        if name in ("open", "GFile"):
            writes = any(set(mode) & set("wax+") for mode in modes if mode)
        elif name in ("replace", "move", *NOT_OF_FILES):
            writes = owner in ("os", "shutil", "tf.io.gfile", "each")
        else:
            writes = name in CALLS
        if writes:
            yield whole


@pytest.mark.parametrize(
    "source",
    [
        "open(path, 'w')",
        "path.open('ab')",
        "open(path, mode='r+')",
        "tf.io.gfile.GFile(path, 'wb')",
        "path.write_text(text)",
        "figure.savefig(path)",
        "os.replace(new, path)",
        "shutil.copy(old, path)",
        "os.truncate(path, 3)",
    ],
)
def test_the_search_for_writers_finds(source):
    assert list(writing_calls(ast.parse(source)))


def test_all_that_writes_does_so_by_one_module():
    others = "open(path); open(path, 'rb'); files.write_text(path, ''); x.replace(a, b)"
    assert not list(writing_calls(ast.parse(others)))
    found = {
        str(path.relative_to(REPOSITORY)): calls
        for path in sorted(pathlib.Path(REPOSITORY, "tfrl").rglob("*.py"))
        if re.search(rf"\b({'|'.join(CANDIDATES)})\(", path.read_text())
        and (calls := list(writing_calls(ast.parse(path.read_text()))))
    }
    assert found.keys() == WRITERS.keys(), "write by tfrl.system.files, or say why not"


@pytest.mark.parametrize(
    ("code", "expected"),
    [(errno.ENOSPC, True), (errno.EFBIG, True), (errno.EACCES, False), (None, False)],
)
def test_the_errors_of_a_full_disk_are_told_from_others(code, expected):
    error = OSError() if code is None else OSError(code, "text")
    assert files.is_disk_full(error) == expected


def test_writing_to_a_full_device_is_such_an_error():
    with (
        open("/dev/full", "wb", buffering=0) as file,
        pytest.raises(OSError, match="No space") as error,
    ):
        file.write(b"x")
    assert files.is_disk_full(error.value)
