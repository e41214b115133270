import collections

import pytest

from tfrl.specs import nest_levels

Pair = collections.namedtuple("Pair", "first second")


@pytest.mark.parametrize(
    "nest",
    [
        {"b": 1, "a": 2},
        collections.OrderedDict(b=1, a=2),
        {},
        [1, 2],
        (1,),
        (),
        Pair(1, [2]),
    ],
)
def test_what_was_taken_apart_is_put_together_again(nest):
    level, items = nest_levels.split(nest)
    joined = nest_levels.join(level, items)
    assert joined == nest
    assert type(joined) is type(nest)


def test_leaves_are_not_taken_apart():
    assert nest_levels.split("ab") is None
    assert nest_levels.split(3) is None


def test_items_have_the_keys_the_fields_or_the_indices_as_paths():
    paths = []
    for nest in ({"b": 1, "a": 2}, Pair(1, 2), (1, 2)):
        level, _ = nest_levels.split(nest)
        paths.append([level.path_of(0), level.path_of(1)])
    assert paths == [["b", "a"], ["first", "second"], [0, 1]]


@pytest.mark.parametrize("name", ["Pair", "_Pair", "unknown.Pair"])
def test_unknown_named_tuples_get_one_class_of_the_same_name(name):
    level = nest_levels.Level("namedtuple", ("x", "y"), name, "no.such.module")
    made = nest_levels.join(level, [1, 2])
    assert made == (1, 2)
    assert type(made).__name__ == name.rpartition(".")[2]
    assert type(made) is type(nest_levels.join(level, [3, 4]))


def test_a_name_that_no_class_can_have_is_replaced():
    level = nest_levels.Level("namedtuple", ("x",), "not a name")
    assert type(nest_levels.join(level, [1])).__name__ == "Nest"
