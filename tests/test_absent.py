"""What TF-Agents or Acme has and tfrl has not says so."""

import importlib
import pathlib
import re

import pytest

import tfrl
from tfrl import absent, gone
from tfrl.algorithms import registry

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
# The libraries, and the sections on what only they have.
SECTIONS = {
    "TF-Agents": ("from_tf_agents.md", "What is not here"),
    "Acme": ("from_acme.md", "Agents"),
}
BY_LIBRARY = {
    library: [name for name, text in absent.NAMES.items() if text.startswith(library)]
    for library in SECTIONS
}


def expected(name):
    """The pattern of the message for an absent name."""
    if name in gone.NAMES:
        return f"^{name}: it is gone; instead: "
    (library,) = (key for key, names in BY_LIBRARY.items() if name in names)
    return (
        f"^{name}: {library} has it, tfrl does not: .*"
        r"(use |keep |train|write |call |runs |run |losses\.|networks\.|there is no )"
    )


@pytest.mark.parametrize("name", absent.NAMES)
def test_the_use_of_an_absent_name_says_what_there_is_instead(name):
    package, _, last = name.rpartition(".")
    for statement in (f"from {package} import {last}", f"import {name}"):
        with pytest.raises(ImportError, match=expected(name)):
            exec(statement, {})
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match=expected(name)):
        getattr(module, last)
    assert last not in dir(module)


@pytest.mark.parametrize("name", [name for _, name in registry.CLASSES.values()])
def test_an_algorithm_in_agents_leads_to_what_there_is(name):
    message = rf"^tfrl\.agents\.{name}: use tfrl\.{name}, the whole algorithm, or the "
    with pytest.raises(ImportError, match=message):
        exec(f"from tfrl.agents import {name}", {})
    with pytest.raises(AttributeError, match=message):
        getattr(tfrl.agents, name)
    assert getattr(tfrl, name)


def test_modules_below_and_imports_from_an_absent_one_say_so():
    for statement in (
        "from tfrl.policies.py_tf_policy import PyTFPolicy",
        "from tfrl.agents.dqn import examples",
        "from tfrl.agents.dqn.examples.v2 import train_eval",
        "import tfrl.environments.examples.tic_tac_toe_environment",
    ):
        with pytest.raises(ImportError, match="TF-Agents has it, tfrl does not"):
            exec(statement, {})


def test_other_names_are_the_usual_errors():
    with pytest.raises(
        ModuleNotFoundError, match=r"No module named 'tfrl\.agents\.pp'"
    ):
        exec("import tfrl.agents.pp", {})
    with pytest.raises(ImportError, match="cannot import name 'SacAgant'"):
        exec("from tfrl.agents import SacAgant", {})


@pytest.mark.parametrize("library", SECTIONS)
def test_the_page_lists_every_absent_name(library):
    page, heading = SECTIONS[library]
    section = re.search(
        rf"\n## {heading}\n(.*?)(\n## |$)", (DOCS / page).read_text(), re.DOTALL
    )[1]
    listed = set(re.findall(r"[\w.]+", section))
    names = {name.removeprefix("tfrl.") for name in BY_LIBRARY[library]}
    assert names
    assert {
        name
        for name in names
        if not {name, name.rpartition(".")[2], name.removeprefix("agents.")} & listed
        and not any(name.endswith(f".{word}") for word in listed)
    } == set()


def test_commands_that_messages_name_are_there():
    named = re.findall(r"`tfrl train (\w+)`", " ".join(absent.NAMES.values()))
    assert len(named) >= 6
    assert {*named} <= registry.CLASSES.keys()
