"""Rows of CSV files come back, also after a cut at any place."""

import csv
import io
import warnings

from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.loggers import csv as csv_logger

KEYS = st.text("ab,\"'é \n", min_size=1, max_size=4)
ROWS = st.lists(
    st.dictionaries(
        KEYS,
        st.floats(allow_nan=False)
        | st.integers()
        | properties.TEXTS.filter(lambda x: "\0" not in x),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=5,
)


def write(path, rows):
    logger = csv_logger.CSVLogger(path)
    for row in rows:
        logger.write(row)
    logger.close()


def as_dicts(rows):
    header, *rows = rows
    return [
        {name: cell for name, cell in zip(header, row, strict=True) if cell}
        for row in rows
    ]


@given(ROWS, st.integers(0, 5))
def test_rows_come_back_when_the_file_is_opened_again(tmp_path_factory, rows, place):
    path = tmp_path_factory.mktemp("csv") / "metrics.csv"
    write(path, rows[:place])
    write(path, rows[place:])
    got = as_dicts(csv_logger.read_rows(path))
    assert got == [{name: str(x) for name, x in row.items() if str(x)} for row in rows]


@given(st.data(), ROWS)
def test_a_cut_costs_the_row_in_which_it_is(tmp_path_factory, data, rows):
    path = tmp_path_factory.mktemp("csv") / "metrics.csv"
    write(path, rows)
    content = path.read_bytes()
    place = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:place])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        left = csv_logger.read_rows(path)
    whole = [*csv.reader(io.StringIO(content.decode(), newline=""))]
    assert left == whole[: len(left)]
    # No more than that row is lost.
    again = io.StringIO(newline="")
    csv.writer(again).writerows(whole[: len(left) + 1])
    assert len(again.getvalue().encode()) > place or len(left) == len(whole)
