"""Imports say what TF-Agents or Acme has and tfrl has not, and happen in contexts."""

import contextlib
import importlib
import re
import sys
import warnings

import pytest

import tfrl
from tfrl import imports
from tfrl.algorithms import registry

ROWS = imports.absent_rows()
# The names in modules; those in classes are tested in tests/migration/test_names.py.
ABSENT = {
    f"{row.module}.{name}": row for row in ROWS for name in row.names if "." not in name
}


def expected(name):
    """The pattern of the message for an absent name."""
    return f"^{name}: {ABSENT[name].library} has it, tfrl does not; instead: ."


@pytest.mark.parametrize("name", ABSENT)
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


@pytest.mark.parametrize(
    "statement",
    [
        "from tfrl.policies.py_tf_policy import PyTFPolicy",
        "from tfrl.agents.dqn import examples",
        "from tfrl.agents.dqn.examples.v2 import train_eval",
        "import tfrl.environments.examples.tic_tac_toe_environment",
    ],
)
def test_modules_below_and_imports_from_an_absent_one_say_so(statement):
    with pytest.raises(ImportError, match="TF-Agents has it, tfrl does not"):
        exec(statement, {})


def test_other_names_are_the_usual_errors():
    with pytest.raises(
        ModuleNotFoundError, match=r"No module named 'tfrl\.agents\.pp'"
    ):
        exec("import tfrl.agents.pp", {})
    with pytest.raises(ImportError, match="cannot import name 'SacAgant'"):
        exec("from tfrl.agents import SacAgant", {})
    # A module that lacks names of TF-Agents.
    with pytest.raises(ImportError, match="cannot import name 'TFPolcy'"):
        exec("from tfrl.policies.tf_policy import TFPolcy", {})
    with pytest.raises(AttributeError, match="no attribute 'TFPolcy'"):
        _ = tfrl.policies.tf_policy.TFPolcy


def test_a_module_that_lacks_names_can_be_imported_again():
    module = importlib.import_module("tfrl.acme.utils.paths")
    assert importlib.reload(module) is module
    with pytest.raises(AttributeError, match="TFRL_ID"):
        _ = module.ACME_ID


def test_a_row_has_names_and_says_what_to_write_or_where_they_are():
    assert len(ABSENT) >= 150
    assert {row.library for row in ROWS} == {"TF-Agents", "Acme"}
    assert len({(row.module, name) for row in ROWS for name in row.names}) == sum(
        len(row.names) for row in ROWS
    )
    for row in ROWS:
        assert row.names
        assert row.instead
        assert len(row.moved) in (0, len(row.names))
        for name in row.moved:
            module, _, last = name.rpartition(".")
            assert getattr(importlib.import_module(module), last)


def test_commands_that_messages_name_are_there():
    texts = [imports.explanation(name) for name in ABSENT]
    named = re.findall(r"the command tfrl train (\w+)", " ".join(texts))
    assert len(named) >= 6
    assert {*named} <= registry.CLASSES.keys()


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


def test_a_package_is_imported_in_the_contexts_once_and_the_first_is_outside(package):
    events = []
    name = package("import json")
    imports.around(name, context_of(events, "outer"), context_of(events, "inner"))
    assert importlib.util.find_spec(name)
    assert events == []
    __import__(name)
    assert events == ["begin outer", "begin inner", "end inner", "end outer"]
    imports.around(name, context_of(events, "late"))
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


def test_a_package_that_is_not_there_stays_absent():
    imports.around("no_such_package", contextlib.nullcontext)
    with pytest.raises(ModuleNotFoundError):
        __import__("no_such_package")


@pytest.fixture
def renamed(monkeypatch):
    old = "tfrl.agents.OldAgent"
    monkeypatch.setitem(imports.RENAMED, old, ("tfrl.agents.DqnAgent", "0.3"))
    imports.warn_renamed.cache_clear()
    yield old
    imports.warn_renamed.cache_clear()


@pytest.mark.parametrize("statement", ["tfrl.agents.OldAgent", "imported()"])
def test_a_renamed_name_warns_once_where_it_is_used_and_works(renamed, statement):
    def imported():
        from tfrl.agents import OldAgent

        return OldAgent

    code = compile(statement, "a_program.py", "eval")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = [eval(code, {"tfrl": tfrl, "imported": imported}) for _ in range(2)]
    assert found == 2 * [tfrl.agents.DqnAgent]
    (warning,) = caught
    assert warning.category is DeprecationWarning
    assert str(warning.message) == (
        "tfrl.agents.OldAgent is called tfrl.agents.DqnAgent now, and tfrl 0.3 will "
        "not know the old name."
    )
    assert warning.filename in ("a_program.py", __file__)
    assert "OldAgent" not in dir(tfrl.agents)


def test_a_renamed_argument_warns_where_it_is_given():
    def make(new=None, old=None):
        if old is not None:
            imports.warn_renamed("make's old", "new", "0.3")

    imports.warn_renamed.cache_clear()
    with pytest.warns(DeprecationWarning, match="make's old is called new") as told:
        [make(old=value) for value in (1, 2)]
    assert [warning.filename for warning in told] == [__file__]
    imports.warn_renamed.cache_clear()
