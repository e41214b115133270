import contextlib
import errno
import resource

import numpy as np
import pytest
import tensorflow as tf

from tfrl import replay_service
from tfrl.replay_service import errors
from tfrl.train.runs import full_disk, run_directory


@contextlib.contextmanager
def files_of_at_most(size):
    """Limits the size of files: a larger one fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_in_python_is_explained():
    message = r"^disk: got 'No space left on device', .* last checkpoint\.$"
    with (
        open("/dev/full", "wb", buffering=0) as file,
        pytest.raises(full_disk.FullDiskError, match=message),
        full_disk.explaining(),
    ):
        file.write(b"x")


def test_the_file_is_named_where_it_is_known():
    error = OSError(errno.EDQUOT, "Disk quota exceeded", "/home/policy")
    with (
        pytest.raises(
            full_disk.FullDiskError, match="got '/home/policy: Disk quota exceeded'"
        ),
        full_disk.explaining(),
    ):
        raise error


def test_a_full_disk_in_tensorflow_is_explained(tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(tf.zeros([100_000])))
    with (
        pytest.raises(
            full_disk.FullDiskError,
            match=r"got '\S+/model\S*: File too large', expected sp",
        ),
        files_of_at_most(10_000),
        full_disk.explaining(),
    ):
        checkpoint.write(str(tmp_path / "model"))


def test_a_full_disk_of_a_replay_server_is_explained(tmp_path):
    table = replay_service.Table.queue("items", 100)
    checkpointer = replay_service.checkpointers.DefaultCheckpointer(tmp_path)
    # The server inherits the limit.
    with files_of_at_most(100_000):
        server = replay_service.Server([table], checkpointer=checkpointer)
    try:
        client = server.localhost_client()
        for _ in range(30):
            client.insert(np.zeros(1000), {"items": 1.0})
        with (
            pytest.raises(
                full_disk.FullDiskError,
                match=rf"checkpoint in {tmp_path}: .* File too large['\"], expected s",
            ),
            full_disk.explaining(),
        ):
            client.checkpoint()
    finally:
        server.stop()


def test_a_full_disk_is_explained_where_a_folder_cannot_be_locked(tmp_path):
    with (
        pytest.raises(full_disk.FullDiskError, match=r"got .*File too large., exp"),
        files_of_at_most(0),
    ):
        run_directory.RunDirectory(tmp_path, {})


@pytest.mark.parametrize(
    "error",
    [
        errors.ResourceExhaustedError("There is not enough memory."),
        FileNotFoundError(errno.ENOENT, "No such file"),
        tf.errors.ResourceExhaustedError(None, None, "out of memory"),
        ValueError("No space left on device"),
        full_disk.FullDiskError("disk: got 'x'"),
    ],
)
def test_other_errors_are_left_as_they_are(error):
    with pytest.raises(type(error)) as raised, full_disk.explaining():
        raise error
    assert raised.value is error
