"""Imports in the contexts that modules choose."""

import contextlib
import subprocess
import sys

import pytest

from tfrl import imports


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a package with a code, and returns its name."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(code):
        (tmp_path / "large_package.py").write_text(code)
        return "large_package"

    yield write
    sys.modules.pop("large_package", None)


def context_of(events, name):
    @contextlib.contextmanager
    def context():
        events.append(f"begin {name}")
        try:
            yield
        finally:
            events.append(f"end {name}")

    return context


def test_a_package_is_imported_in_the_contexts_once_and_the_last_is_outside(package):
    events = []
    name = package("import json")
    inner, outer = context_of(events, "inner"), context_of(events, "outer")
    imports.around(name, inner)
    imports.around(name, outer)
    imports.around(name, inner)
    __import__(name)
    assert events == ["begin outer", "begin inner", "end inner", "end outer"]
    imports.around(name, inner)
    del sys.modules[name]
    __import__(name)
    assert len(events) == 4


def test_contexts_end_when_an_import_fails(package):
    events = []
    name = package("raise RuntimeError('broken')")
    imports.around(name, context_of(events, "it"))
    with pytest.raises(RuntimeError, match="broken"):
        __import__(name)
    assert events == ["begin it", "end it"]


def test_an_absent_package_stays_absent():
    imports.around("no_such_package", contextlib.nullcontext)
    with pytest.raises(ModuleNotFoundError):
        __import__("no_such_package")


def test_tfrl_lets_large_packages_be_imported_without_searches_for_garbage(tmp_path):
    (tmp_path / "keras").mkdir()
    (tmp_path / "keras" / "__init__.py").write_text("import gc\nON = gc.isenabled()\n")
    program = (
        "import tfrl, keras, gc\n"
        "print(keras.ON, gc.isenabled(), gc.get_freeze_count() > 1000)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": f"{tmp_path}:{':'.join(sys.path)}"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed == "False True True\n"
