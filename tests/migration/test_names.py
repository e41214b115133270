"""TF-Agents' module paths and public names: tfrl has them, or the page says why not.

`names.json` lists them as far as tfrl has ever had them, without the package's name:
modules, and their classes, functions, constants and methods ("Class.method"). A name is
only ever added. `tf_agents_names.json` lists the names of TF-Agents 0.19 and its last
commit, without bandits' environments and examples, with their arguments; null for what
takes none.
"""

import functools
import importlib
import inspect
import json
import pathlib
import re

import pytest

from tfrl import imports

NAMES = json.loads((pathlib.Path(__file__).parent / "names.json").read_text())


def has(module, name):
    try:
        functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        return False
    return True


PAGE = (pathlib.Path(__file__).parents[2] / "docs/from_tf_agents.md").read_text()
ROWS = [row for row in imports.absent_rows() if row.library == "TF-Agents"]
GONE = [(row.module.removeprefix("tfrl."), row.names) for row in ROWS]


def test_the_modules_have_their_names():
    missing = []
    for path, names in NAMES.items():
        module = importlib.import_module(f"tfrl.{path}")
        missing += [f"{path}.{name}" for name in names if not has(module, name)]
    assert not missing


def test_the_list_is_whole():
    assert len(NAMES) >= 141
    assert sum(map(len, NAMES.values())) >= 952


def test_names_that_are_said_to_be_absent_are_absent():
    assert GONE
    found = []
    for path, names in GONE:
        assert names, path
        module = importlib.import_module(f"tfrl.{path}")
        found += [f"{path}.{name}" for name in names if has(module, name)]
    assert not found


OF_CLASSES = [
    (f"{row.module}.{name.rpartition('.')[0]}", name.rpartition(".")[2], row)
    for row in ROWS
    for name in row.names
    # GymnasiumWrapper looks for attributes in the environment.
    if "." in name and not name.startswith("GymnasiumWrapper.")
]


@pytest.mark.parametrize(("owner", "name", "row"), OF_CLASSES)
def test_an_absent_attribute_of_a_class_raises_its_row(owner, name, row):
    module = importlib.import_module(row.module)
    instead = row.instead.replace("`", "")
    text = f"TF-Agents has it, tfrl does not; instead: {instead}."
    with pytest.raises(AttributeError, match=re.escape(f"{owner}.{name}: {text}")):
        getattr(getattr(module, owner.rpartition(".")[2]), name)


WHOLE = json.loads((pathlib.Path(__file__).parent / "tf_agents_names.json").read_text())
# Attributes of instances.
OF_INSTANCES = {
    *(f"DistributionSpecV2.{x}" for x in ("dtype", "event_shape", "parameters")),
    "InputNetworkConstraint.network",
}


def named_in(heading):
    """The names in the first two columns of a section's table."""
    section = re.search(rf"\n## {heading}\n(.*?)\n## ", PAGE, re.DOTALL)[1]
    rows = re.findall(r"^\| (.*?) \| (.*?) \|", section, re.MULTILINE)
    return set(
        re.findall(r"`([\w.]+)`", "\n".join(first + second for first, second in rows))
    )


def is_absent(path):
    """Whether tfrl says of a module or a name that it is not here."""
    parts = f"tfrl.{path}".split(".")
    prefixes = (".".join(parts[:i]) for i in range(2, len(parts) + 1))
    return any(map(imports.explanation, prefixes))


def is_gone(path, name):
    kind = name.partition(".")[0]
    return any(
        path == module and (name in names or kind in names) for module, names in GONE
    )


def present():
    """Yields path, name, object and TF-Agents' arguments of each name that tfrl has."""
    for path, names in WHOLE.items():
        if is_absent(path):
            continue
        module = importlib.import_module(f"tfrl.{path}")
        for name, arguments in names.items():
            if has(module, name):
                found = functools.reduce(getattr, name.split("."), module)
                yield path, name, found, arguments


def test_every_name_of_tf_agents_is_here_or_on_the_page():
    assert len(WHOLE) >= 242
    here = {(path, name) for path, name, _, _ in present()}
    assert len(here) >= 1440
    refused = named_in("Subclasses")
    assert not [
        f"{path}.{name}"
        for path, names in WHOLE.items()
        for name in names
        if (path, name) not in here
        and not is_absent(f"{path}.{name}")
        and not is_gone(path, name)
        and name.rpartition(".")[2] not in refused
        and name not in OF_INSTANCES
    ]


def test_calls_take_the_arguments_of_tf_agents_or_are_on_the_page():
    differing = named_in("Calls")
    found = []
    for path, name, function, arguments in present():
        if arguments and {name, f"{path.rpartition('.')[2]}.{name}"}.isdisjoint(
            differing
        ):
            parameters = inspect.signature(function).parameters
            if [each for each in parameters if each in arguments] != arguments:
                found.append((f"{path}.{name}", arguments, list(parameters)))
    assert not found


def test_constructors_take_the_arguments_of_tf_agents_by_position():
    differing, found, number = named_in("Calls"), [], 0
    for path, name, kind, arguments in present():
        if not (arguments and inspect.isclass(kind)):
            continue
        if {name, f"{path.rpartition('.')[2]}.{name}"} & differing:
            continue
        parameters = inspect.signature(kind).parameters.values()
        ordered = [x.name for x in parameters if x.kind == x.POSITIONAL_OR_KEYWORD]
        number += 1
        if ordered[: len(arguments)] != arguments:
            found.append((f"{path}.{name}", arguments, ordered))
    assert not found
    assert number >= 200
