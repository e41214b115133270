"""Recipes: as values, in JSON and back, with changes, and as algorithms."""

import dataclasses
import json

import pytest

import tfrl
from tfrl.algorithms.recipe import Recipe
from tfrl.train.runs import run_length


def through_json(recipe):
    return Recipe.from_json(json.loads(json.dumps(recipe.to_json())))


def test_a_recipe_comes_back_from_json():
    recipe = Recipe.of(tfrl.PPO, "Acrobot-v1").changed(gamma=0.5)
    steps = recipe.changed(num_environment_steps=500)
    started = dataclasses.replace(steps, initial_run="/logs/run", actors={"x": 1})
    for each in (recipe, steps, started):
        back = through_json(each)
        assert back.to_json() == json.loads(json.dumps(each.to_json()))
        assert back.make().settings == each.settings
        assert (back.length, back.algorithm) == (each.length, tfrl.PPO)


def test_the_last_given_length_counts():
    recipe = Recipe.of(tfrl.DQN).changed(num_environment_steps=400)
    assert recipe.length == run_length.RunLength(None, 400)
    assert recipe.changed(gamma=0.5).length == recipe.length
    shorter = recipe.changed(num_iterations=7)
    assert shorter.length == run_length.RunLength(7, None)
    assert shorter.make().length == shorter.length
    with pytest.raises(ValueError, match=r"^num_environment_steps: got 5, and 7 num_i"):
        recipe.changed(num_environment_steps=5, num_iterations=7)


def test_so_many_steps_are_as_many_iterations_as_the_settings_make_of_them():
    recipe = Recipe.of(tfrl.PPO, "CartPole-v1").changed(num_environment_steps=50_000)
    halved = recipe.changed(
        num_envs=recipe.settings["num_envs"], collect_steps_per_iteration=16
    )
    made = halved.make()
    assert made.least_iterations(50_000) == halved.settings["num_iterations"]
    assert halved.settings["num_iterations"] > recipe.settings["num_iterations"]


def test_schedules_that_span_another_length_come_back():
    made = tfrl.PPO("CartPole-v1", num_iterations=30)
    made.schedule_over(30)
    made.length = run_length.RunLength(50, None)
    recipe = through_json(made.recipe())
    assert (recipe.settings["num_iterations"], recipe.schedule_iterations) == (50, 30)
    again = recipe.make()
    assert (again.length, again.schedule_iterations) == (made.length, 30)
    assert again.recipe() == made.recipe()


def test_a_preset_brings_its_environment_and_the_settings_of_its_actors():
    recipe = Recipe.of(tfrl.SAC, preset="sac_lunar_lander")
    assert recipe.environment == "LunarLanderContinuous-v3"
    assert recipe.actors is None
    preset = next(x for x in tfrl.algorithms.presets.every() if x.actors)
    kind = tfrl.algorithms.registry.find(preset.algorithm)
    recipe = Recipe.of(kind, preset.environment, has_actors=True)
    assert recipe.actors == preset.actors


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"env": 5}, "^env: expected a name, got 5; restore it"),
        ({"num_environment_steps": "9"}, "^num_environment_steps: expected a number, "),
        ({"algorithm": "mine"}, "^algorithm: got 'mine', expected one of"),
    ],
)
def test_fields_that_make_no_recipe_are_told(fields, message):
    whole = {**Recipe.of(tfrl.DQN).to_json(), **fields}
    with pytest.raises(ValueError, match=message):
        Recipe.from_json(whole)
    with pytest.raises(ValueError, match=r"^gamma: expected a number"):
        Recipe.of(tfrl.DQN).changed(gamma=-1.0)
    with pytest.raises(ValueError, match=r"^environment: got none, and the run tr"):
        dataclasses.replace(Recipe.of(tfrl.DQN), environment="").make()
