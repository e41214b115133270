"""Imports without searches for garbage."""

import gc
import subprocess
import sys

import pytest

from tfrl import imports


def test_what_an_import_has_made_is_not_searched_as_new_objects_are(tmp_path):
    (tmp_path / "keras").mkdir()
    (tmp_path / "keras" / "__init__.py").write_text("import gc\nON = gc.isenabled()\n")
    program = "import tfrl, keras, gc; print(keras.ON, gc.isenabled())"
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": f"{tmp_path}:{':'.join(sys.path)}"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed == "False True\n"


@pytest.mark.parametrize("is_enabled", [True, False])
def test_no_garbage_is_collected_in_an_import(is_enabled):
    try:
        (gc.enable if is_enabled else gc.disable)()
        with imports.without_collections():
            with imports.without_collections():
                assert not gc.isenabled()
            assert not gc.isenabled()
        assert gc.isenabled() == is_enabled
    finally:
        gc.enable()


def test_garbage_is_collected_after_an_import_that_fails():
    with pytest.raises(ImportError), imports.without_collections():
        raise ImportError
    assert gc.isenabled()
