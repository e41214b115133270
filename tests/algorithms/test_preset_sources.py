import pytest

from tests.algorithms import preset_sources
from tfrl.algorithms import presets, registry

# Words of a `source` that names none.
_OWN = ("chosen on", "chosen for")


def settings_of(preset):
    return registry.find(preset.algorithm)(settings=preset.settings).settings


def compare(preset):
    """Returns the settings that are not the source's, as (ours, the source's)."""
    expected = preset_sources.COMPARISONS[preset.name].expected()
    return {
        name: (value, expected.get(name, "nothing"))
        for name, value in settings_of(preset).items()
        if name not in preset_sources.OWN and expected.get(name, "nothing") != value
    }


@pytest.mark.parametrize("name", preset_sources.COMPARISONS)
def test_a_preset_has_the_values_of_its_source_but_for_those_that_are_listed(name):
    found = compare(presets.named(name))
    listed = preset_sources.COMPARISONS[name].differs
    assert {field: x for field, x in found.items() if field not in listed} == {}
    assert listed.keys() - found.keys() == set()


def test_each_preset_that_names_a_source_is_compared_with_it():
    named = {x.name for x in presets.every() if not x.source.startswith(_OWN)}
    assert named == preset_sources.COMPARISONS.keys()


@pytest.mark.parametrize("name", preset_sources.COMPARISONS)
def test_the_text_of_a_source_says_that_settings_differ(name):
    differs = preset_sources.COMPARISONS[name].differs
    # A comma separates the source from what is different.
    assert "," in presets.named(name).source or not differs


def test_a_source_whose_values_are_not_all_read_is_refused():
    source = preset_sources.Source("a", "b", "c", {"gamma": 0.9, "forgotten": 1})
    comparison = preset_sources.Comparison(
        (source,), lambda x: {"gamma": x.pop("gamma")}
    )
    with pytest.raises(ValueError, match="forgotten"):
        comparison.expected()


def test_the_settings_of_a_source_are_settings():
    for name, comparison in preset_sources.COMPARISONS.items():
        known = settings_of(presets.named(name))
        assert comparison.expected().keys() <= known.keys(), name


def test_a_number_of_iterations_is_next_to_the_exact_one():
    exact = preset_sources.Between(93.75)
    assert [x for x in range(80, 100) if exact == x] == [93, 94]
