"""TF-Agents' module paths and public names, as far as tfrl has ever had them.

`names.json` lists them without the package's name: modules, and their classes,
functions, constants and methods ("Class.method"). A name is only ever added.
"""

import functools
import importlib
import json
import pathlib
import re

import pytest

NAMES = json.loads((pathlib.Path(__file__).parent / "names.json").read_text())


def has(module, name):
    try:
        functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        return False
    return True


PAGE = (pathlib.Path(__file__).parents[2] / "docs/from_tf_agents.md").read_text()
# The rows "`module`: `name`, `name` | the way out" of the table of names.
GONE = re.findall(r"^\| `([\w.]+)`: (.*?) \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize("path", NAMES)
def test_a_module_has_its_names(path):
    module = importlib.import_module(f"tfrl.{path}")
    assert [name for name in NAMES[path] if not has(module, name)] == []


def test_the_list_is_whole():
    assert len(NAMES) >= 141
    assert sum(map(len, NAMES.values())) >= 952


@pytest.mark.parametrize(("path", "names"), GONE)
def test_names_that_the_page_says_are_gone_are_gone(path, names):
    module = importlib.import_module(f"tfrl.{path}")
    listed = re.findall(r"`([\w.]+)`", names)
    assert listed
    assert [name for name in listed if has(module, name)] == []
