"""Which errors a command explains, and which it shows with a traceback."""

import pytest
import tensorflow as tf

from tfrl.command import errors


def caught(code, module, given=None):
    """The error that code of a module raises."""
    space = {"__name__": module}
    exec("def fail(given):\n    " + code, space)
    try:
        space["fail"](given)
    except Exception as error:
        return error


@pytest.mark.parametrize(
    ("code", "module", "is_for_the_user"),
    [
        ("raise ValueError('gamma: got 2, expected 1; set 1.')", "tfrl.x", True),
        ("raise TypeError('environment: got 5.')", "examples.x", True),
        ("raise RuntimeError('folder: got x.')", "__main__", True),
        ("raise KeyError('gamma')", "tfrl.x", True),
        ("open('/no/such/file')", "tfrl.x", True),
        ("import no_such_module", "tfrl.x", True),
        ("{}['gamma']", "tfrl.x", False),
        ("given.name", "tfrl.x", False),
        ("given + 1", "tfrl.x", False),
        ("int('gamma')", "tfrl.x", False),
        ("fail()", "tfrl.x", False),
        ("assert given, 'a text'", "tfrl.x", False),
        ("raise NotImplementedError", "tfrl.x", False),
        ("raise ValueError('axis 3 is out of bounds')", "numpy.core", False),
    ],
)
def test_a_fault_of_tfrl_is_none_of_the_users_mistakes(code, module, is_for_the_user):
    assert errors.is_for_the_user(caught(code, module)) == is_for_the_user


def test_an_error_that_goes_through_other_code_is_where_it_began():
    space = {"__name__": "tfrl.x"}
    exec("def check():\n    raise ValueError('gamma: got 2, expected 1.')", space)
    passed_on = "try:\n        given()\n    finally:\n        len('x')"
    assert errors.is_for_the_user(caught(passed_on, "numpy.core", space["check"]))


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
