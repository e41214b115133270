"""Files of runs, damaged anywhere, give what they hold, or one error."""

import json
import warnings

from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.train.runs import run_files

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | properties.TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(properties.TEXTS, inner, max_size=3)
    ),
    max_leaves=6,
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"iteration": st.integers(0, 2**62), "loss": st.floats(-1e9, 1e9)},
        optional={
            "evaluation_returns": st.lists(st.floats(-1e9, 1e9), max_size=3),
            "note": st.booleans(),
        },
    ),
    min_size=1,
    max_size=4,
)


def written(rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def read(path, content):
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run_files.read_rows(path)


@given(ROWS)
def test_rows_come_back(tmp_path, rows):
    path = tmp_path / "diagnostics.jsonl"
    path.write_bytes(written(rows))
    assert run_files.read_rows(path) == rows


@given(st.data(), ROWS)
def test_damage_costs_the_lines_that_it_meets(tmp_path, data, rows):
    lines = written(rows).splitlines(keepends=True)
    place = data.draw(st.integers(0, len(lines) - 1))
    # The end of a line joins it with the next one.
    lines[place] = properties.damaged(data.draw, lines[place][:-1]) + b"\n"
    got = read(tmp_path / "diagnostics.jsonl", b"".join(lines))
    kept = [row for i, row in enumerate(rows) if i != place]
    assert [row for row in got if row in kept] == kept


@given(st.lists(VALUES, max_size=4), st.binary(max_size=9))
def test_rows_of_anything_are_left_out_or_have_an_iteration(tmp_path, values, end):
    content = b"".join(json.dumps(x).encode() + b"\n" for x in values) + end
    for row in read(tmp_path / "diagnostics.jsonl", content):
        assert run_files.is_count(row["iteration"])
        json.dumps(row)


@given(st.binary(max_size=20) | VALUES.map(lambda x: json.dumps(x).encode()))
def test_a_configuration_is_an_object_or_an_error(tmp_path, content):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = run_files.read_config(path, {"gamma": (float,)})
        except run_files.RunDirectoryError as error:
            found, told = {}, str(error)
        else:
            told = str(path)
    assert str(path) in told
    assert isinstance(found, dict)
    assert isinstance(found.get("env"), str | None)
