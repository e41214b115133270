"""An import of what TF-Agents has and tfrl has not says so."""

import pathlib
import re

import pytest

from tfrl import absent

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "from_tf_agents.md"


@pytest.mark.parametrize("name", absent.NAMES)
def test_an_import_of_an_absent_name_names_the_page(name):
    package, _, last = name.rpartition(".")
    for statement in (f"from {package} import {last}", f"import {name}"):
        with pytest.raises(
            ImportError,
            match=f"^{name}: TF-Agents has it, tfrl does not: .*"
            "docs/from_tf_agents.md#what-is-not-here",
        ):
            exec(statement, {})


def test_modules_below_and_imports_from_an_absent_one_say_so():
    for statement in (
        "import tfrl.bandits.agents.lin_ucb_agent",
        "from tfrl.policies.qtopt_cem_policy import CEMPolicy",
        "from tfrl.bandits.agents import lin_ucb_agent",
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


def test_the_page_lists_every_absent_name():
    section = re.search(
        r"## What is not here\n(.*?)\n## ", PAGE.read_text(), re.DOTALL
    )[1]
    listed = set(re.findall(r"[\w.]+", section))
    names = {name.removeprefix("tfrl.") for name in absent.NAMES}
    assert {
        name
        for name in names
        if name not in listed and name.rpartition(".")[2] not in listed
    } == set()
