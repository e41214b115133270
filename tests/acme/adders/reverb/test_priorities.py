"""Priorities by functions of items."""

import numpy as np

from tfrl.acme.adders.reverb.utils import calculate_priorities


class Column:
    """A column that counts how often its data is read."""

    reads = 0

    def numpy(self):
        self.reads += 1
        return np.arange(3)


def test_each_table_has_its_function_and_the_data_is_read_once():
    column = Column()
    priorities = calculate_priorities(
        {"sum": lambda item: item["x"].sum(), "most": lambda item: item["x"].max()}
        | {"one": None},
        {"x": column},
    )
    assert priorities == {"sum": 3, "most": 2, "one": 1.0}
    assert column.reads == 1


def test_without_functions_the_data_is_not_read():
    column = Column()
    assert calculate_priorities({"table": None}, {"x": column}) == {"table": 1.0}
    assert column.reads == 0
