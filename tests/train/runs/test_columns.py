"""The columns of a run's log: that every number has one, and what reads them."""

import ast
import inspect
import pathlib
import textwrap

import numpy as np
import pytest

import tfrl
from tests.train.runs import test_run_log
from tfrl.algorithms import bandits
from tfrl.distribute.roles import run_measurements
from tfrl.eval import evaluate
from tfrl.loggers import base
from tfrl.reports import figures
from tfrl.train.runs import columns, run_files

PACKAGE = pathlib.Path(tfrl.__file__).parent
# What reads a number of a run by its name.
READERS = ("values", "late", "last", "column")


def literals(tree):
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def sources(*folders):
    paths = [path for folder in folders for path in (PACKAGE / folder).rglob("*.py")]
    return [ast.parse(path.read_text()) for path in paths]


def test_a_run_writes_no_unknown_number(tmp_path):
    memory = base.InMemoryLogger()
    result = evaluate.EvaluationResult(
        np.array([1, 2], np.float32),
        np.array([3, 5]),
        terminated=np.array([True, False]),
        predicted=np.array([1.0, 2.0]),
        realized=np.array([1.0, 3.0]),
    )
    run, _ = test_run_log.make_run(
        tmp_path, loggers=[memory], evaluate=lambda iteration: result
    )
    run.run()
    rows = run_files.read_rows(tmp_path / "diagnostics.jsonl")
    written = {name for row in (*rows, *memory.data) for name in row}
    assert written >= {"realized_return", "evaluation_terminated", "weights_change"}
    assert {name for name in written if columns.find(name) is None} == set()
    (header, *_) = run_files.read_metrics(tmp_path / "metrics.csv")
    assert tuple(header) == columns.TABLE


@pytest.mark.parametrize(
    "function",
    [bandits.RegretView.measure, run_measurements.RunMeasurements._since],
)
def test_the_columns_of_our_views_are_known(function):
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    dictionaries = [node for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    names = {key.value for node in dictionaries for key in node.keys}
    assert names
    assert names <= columns.BY_NAME.keys()


@pytest.fixture(scope="module")
def written():
    """The strings in the code that writes columns."""
    trees = sources("agents", "losses", "train", "algorithms", "distribute")
    return set().union(*map(literals, trees))


@pytest.mark.parametrize("column", columns.COLUMNS, ids=lambda column: column.name)
def test_every_column_is_written_somewhere(column, written):
    base, _, end = column.name.rpartition("_")
    assert column.name in written or (base in written and f"_{end}" in written)


def test_reports_read_no_unknown_number():
    calls = [
        node
        for tree in sources("reports")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in READERS
    ]
    read = {
        argument.value
        for call in calls
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }
    assert read > {"approx_kl", "evaluation_return", "td_error"}
    shown = {name for figure in figures.FIGURES for name in figure.names}
    assert {name for name in read | shown if columns.find(name) is None} == set()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("loss", "loss"),
        ("actor_learning_rate", "learning_rate"),
        ("cql_alpha_gradient_norm", "gradient_norm"),
        ("penalty_q_max", "q_max"),
        ("my_td_error", None),  # The errors are not those of one part.
        ("success", None),
    ],
)
def test_a_part_of_an_agent_may_stand_before_the_name(name, expected):
    found = columns.find(name)
    assert (found.name if found else None) == expected


def test_a_number_without_an_own_tag_is_one_of_training():
    assert columns.tag("evaluation_length") == "eval/average_length"
    assert columns.tag("iteration") == "iteration"
    assert columns.tag("actor_learning_rate") == "train/actor_learning_rate"
    assert columns.tag("success") == "train/success"
