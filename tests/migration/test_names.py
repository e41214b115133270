"""TF-Agents' module paths and public names, as far as tfrl has ever had them.

`names.json` lists them without the package's name: modules, and their classes,
functions, constants and methods ("Class.method"). A name is only ever added.
"""

import functools
import importlib
import json
import pathlib
import re

NAMES = json.loads((pathlib.Path(__file__).parent / "names.json").read_text())


def has(module, name):
    try:
        functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        return False
    return True


PAGE = (pathlib.Path(__file__).parents[2] / "docs/from_tf_agents.md").read_text()
# The rows "`module`: `name`, `name` | the way out" of the table of names.
GONE = [
    (path, re.findall(r"`([\w.]+)`", names))
    for path, names in re.findall(r"^\| `([\w.]+)`: (.*?) \|", PAGE, re.MULTILINE)
]


def test_the_modules_have_their_names():
    missing = []
    for path, names in NAMES.items():
        module = importlib.import_module(f"tfrl.{path}")
        missing += [f"{path}.{name}" for name in names if not has(module, name)]
    assert not missing


def test_the_list_is_whole():
    assert len(NAMES) >= 141
    assert sum(map(len, NAMES.values())) >= 952


def test_names_that_the_page_says_are_gone_are_gone():
    assert GONE
    found = []
    for path, names in GONE:
        assert names, path
        module = importlib.import_module(f"tfrl.{path}")
        found += [f"{path}.{name}" for name in names if has(module, name)]
    assert not found
