import errno

import pytest

from tfrl.system import disk_space


@pytest.mark.parametrize(
    ("code", "expected"),
    [(errno.ENOSPC, True), (errno.EFBIG, True), (errno.EACCES, False), (None, False)],
)
def test_the_errors_of_a_full_disk_are_told_from_others(code, expected):
    error = OSError() if code is None else OSError(code, "text")
    assert disk_space.is_used_up(error) == expected


def test_writing_to_a_full_device_is_such_an_error():
    with (
        open("/dev/full", "wb", buffering=0) as file,
        pytest.raises(OSError, match="No space") as error,
    ):
        file.write(b"x")
    assert disk_space.is_used_up(error.value)
