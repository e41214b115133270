"""Which errors a command explains, and which it shows with a traceback."""

import pytest
import tensorflow as tf

from tfrl.command import errors


def raised(error, module):
    """An error that a function of another module raises in a run."""
    error.add_note("It ended the run at iteration 5.")
    space = {"__name__": module, "error": error}
    exec("def allocate():\n    raise error", space)
    try:
        space["allocate"]()
    except Exception as caught:
        return caught


@pytest.mark.parametrize(
    ("error", "is_of_users_code"),
    [
        (ValueError("wrong"), True),
        (MemoryError("Unable to allocate 8 GiB"), False),
        (tf.errors.ResourceExhaustedError(None, None, "OOM when allocating"), False),
    ],
)
def test_lack_of_memory_is_no_fault_of_the_code_that_asks_for_it(
    error, is_of_users_code
):
    found = raised(error, "numpy._core")
    assert errors.is_of_users_code(found) == is_of_users_code
    assert ("memory: the run needs more" in errors.describe(found)) != is_of_users_code
