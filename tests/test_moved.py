"""Modules that moved are importable under their old names, with a warning."""

import importlib
import subprocess
import sys

import pytest

from tfrl import moved


@pytest.mark.parametrize("old_name", moved.MODULES)
def test_an_old_name_is_the_new_module_and_warns(old_name):
    sys.modules.pop(old_name, None)
    new_name = moved.MODULES[old_name]
    with pytest.warns(DeprecationWarning, match=f"{old_name} is now {new_name}"):
        module = importlib.import_module(old_name)
    assert module is importlib.import_module(new_name)
    assert module.__name__ == module.__spec__.name == new_name


def test_the_warning_points_at_the_import():
    code = "from tfrl.utils import quiet\nprint(quiet.quieten_tensorflow.__name__)"
    result = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", code],
        capture_output=True,
        text=True,
    )
    assert "tfrl.utils.quiet is now tfrl.system.quiet" in result.stderr
    assert result.returncode != 0


def test_names_that_never_were_are_errors():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tfrl.utils.no_such_module")
