"""Recipes of any settings come back from JSON and from files."""

import dataclasses
import json

from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tests.algorithms import drawn_settings
from tfrl.algorithms import registry
from tfrl.algorithms.recipe import Recipe
from tfrl.command import config_files

COUNTS = st.none() | st.integers(1, 10**12)


@st.composite
def recipes(draw):
    kind = registry.find(draw(drawn_settings.NAMES))
    values = draw(drawn_settings.changed(kind))
    return Recipe(
        kind,
        draw(properties.TEXTS.filter(lambda x: ":" not in x)),
        {
            **kind.defaults(),
            **values,
            **draw(st.sampled_from([{}, {"emulator": "gymnasium"}])),
        },
        draw(COUNTS),
        draw(COUNTS),
        actors=draw(
            st.none() | st.dictionaries(properties.TEXTS, st.integers(), max_size=2)
        ),
    )


def plain(value):
    """A value as JSON has it."""
    return [*map(plain, value)] if isinstance(value, list | tuple) else value


def assert_same(got, expected):
    for field in dataclasses.fields(Recipe):
        one, other = getattr(got, field.name), getattr(expected, field.name)
        if field.name == "settings":
            one, other = (
                {k: plain(x) for k, x in each.items()} for each in (one, other)
            )
        assert one == other, field.name


@given(recipes())
def test_recipes_come_back_from_json(recipe):
    assert_same(Recipe.from_json(json.loads(json.dumps(recipe.to_json()))), recipe)


@given(recipes())
def test_recipes_come_back_from_files(tmp_path_factory, recipe):
    folder = tmp_path_factory.mktemp("files")
    path = folder / "config.json"
    path.write_text(json.dumps(recipe.to_json()))
    assert_same(config_files.read(str(path), recipe.algorithm, trusts=False), recipe)
    path = folder / "config.py"
    path.write_text(f"def get_config():\n    return {recipe.to_json()!r}\n")
    assert_same(config_files.read(str(path), recipe.algorithm, trusts=False), recipe)
    # A preset has settings alone.
    path = folder / "best.json"
    preset = {
        "algorithm": recipe.algorithm.name,
        "environment": recipe.environment,
        "settings": {k: x for k, x in recipe.settings.items() if k != "emulator"},
    }
    path.write_text(json.dumps(preset))
    got = config_files.read(str(path), recipe.algorithm, trusts=False)
    settings = {k: plain(x) for k, x in got.settings.items()}
    assert settings == {k: plain(x) for k, x in preset["settings"].items()}
    assert got.environment == recipe.environment
