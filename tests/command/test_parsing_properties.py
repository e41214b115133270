"""Settings come back from the words of a command line."""

from hypothesis import given
from hypothesis import strategies as st

from tests.algorithms import drawn_settings
from tfrl.algorithms import registry
from tfrl.command import parsing, sweep


def word_of(name, value):
    """The word by which a user gives a setting."""
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no{name}"
    return f"--{name}={value}"


@st.composite
def commands(draw):
    """Draws an algorithm's class and values of its settings."""
    kind = registry.find(draw(drawn_settings.NAMES))
    return kind, draw(drawn_settings.changed(kind))


@given(commands())
def test_values_of_settings_come_back_from_flags(command):
    kind, values = command
    given_flags = parsing.new()
    parsing.add_fields(given_flags, kind.setting_fields())
    given_flags(["tfrl", *(word_of(*pair) for pair in values.items())])
    assert parsing.typed(given_flags) == values


@given(st.data(), commands())
def test_several_values_come_back_from_one_flag(data, command):
    kind, values = command
    fields = kind.setting_fields()
    expected, words = {}, []
    for name, value in values.items():
        more = data.draw(st.lists(drawn_settings.values_of(fields[name]), max_size=2))
        each = {str(x): x for x in [value, *more]}
        # A text may hold a comma, and an empty one is no value of several.
        if isinstance(value, str) or "" in each:
            continue
        expected[name] = each
        words.append(f"--{name}={','.join(each)}")
    given_flags = parsing.new()
    parsing.add_fields(given_flags, fields)
    parsing.allow_several(given_flags, expected)
    given_flags(["tfrl", *words])
    assert parsing.several(given_flags) == {
        name: each for name, each in expected.items() if len(each) > 1
    }
    assert parsing.typed(given_flags) == {
        name: next(iter(each.values())) for name, each in expected.items()
    }


@given(st.lists(st.integers(0, 99), min_size=1, max_size=5, unique=True))
def test_seeds_come_back_from_their_word(seeds):
    assert sweep._seeds(",".join(map(str, seeds))) == seeds
    first, last = min(seeds), max(seeds)
    assert sweep._seeds(f"{first}..{last}") == [*range(first, last + 1)]
