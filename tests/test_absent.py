"""What TF-Agents or Acme has and tfrl has not, or what has moved, says so."""

import importlib
import pathlib
import re

import pytest

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
    if name in absent.MOVED:
        return f"^{name}: it has moved; use {absent.MOVED[name]}.$"
    if name in gone.NAMES:
        return f"^{name}: it is gone; instead: "
    if name in absent.ALGORITHMS:
        return rf"^{name}: use tfrl\.\w+, the whole .*tfrl\.agents\.\w+, the agent"
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


def test_an_algorithm_in_agents_leads_to_what_there_is():
    assert {name.rpartition(".")[2] for name in absent.ALGORITHMS} == {
        class_name for _, class_name in registry.CLASSES.values()
    }
    for name, text in absent.ALGORITHMS.items():
        found = re.findall(r"tfrl(?:\.\w+)+", text)
        for module, last in (each.rsplit(".", 1) for each in found):
            assert getattr(importlib.import_module(module), last), name
    assert "tfrl.acme.agents.tf.mpo.MPO" in absent.ALGORITHMS["tfrl.agents.MPO"]


def test_modules_below_and_imports_from_an_absent_one_say_so():
    for statement in (
        "import tfrl.bandits.agents.lin_ucb_agent",
        "from tfrl.policies.qtopt_cem_policy import CEMPolicy",
        "from tfrl.bandits.agents import lin_ucb_agent",
        "from tfrl.agents.dqn.examples.v2 import train_eval",
        "import tfrl.environments.examples.tic_tac_toe_environment",
    ):
        with pytest.raises(ImportError, match="TF-Agents has it, tfrl does not"):
            exec(statement, {})


def test_what_has_moved_is_at_its_new_place():
    for new in absent.MOVED.values():
        module, _, name = new.rpartition(".")
        assert getattr(importlib.import_module(module), name) is not None


def test_the_page_of_changes_names_what_has_moved():
    listed = set(re.findall(r"\w+", (DOCS / "changes.md").read_text()))
    modules = {n for n in absent.MOVED if n.rpartition(".")[2].islower()}
    classes = {name.rpartition(".")[2] for name in absent.MOVED.keys() - modules}
    assert classes
    assert classes <= listed


def test_modules_below_and_imports_from_what_has_moved_say_so():
    for statement in (
        "from tfrl.wrappers import GymWrapper",
        "import tfrl.wrappers.gym_wrapper",
        "from tfrl.adders import reverb as adders",
        "from tfrl.networks.vision import AtariTorso",
    ):
        with pytest.raises(ImportError, match=r"it has moved; use tfrl\.acme\."):
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


def test_programs_that_messages_name_are_there():
    programs = re.findall(r"run (train_\w+) there", " ".join(absent.NAMES.values()))
    assert len(programs) >= 6
    for program in programs:
        assert (DOCS.parent / "examples" / f"{program}.py").exists()
