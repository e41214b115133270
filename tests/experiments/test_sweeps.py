"""Sweeps of many runs: which become one program, and the outputs of each."""

import csv
import json
import shutil

import numpy as np
import pytest

from tfrl import train
from tfrl.algorithms import bandits, registry
from tfrl.algorithms.recipe import Recipe
from tfrl.experiments import sweeps
from tfrl.train.sweeps import members as members_lib
from tfrl.train.sweeps import sweep_result


def member(folder="run", name="dqn", environment="CartPole-v1", **values):
    recipe = Recipe.of(registry.find(name), environment)
    fields = {**recipe.to_json(), **values}
    return sweeps.Member(folder, Recipe.from_json(fields))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, ""),
        ({"name": "sac", "environment": "Pendulum-v1"}, ""),
        ({"environment": "BitFlipping10-v0"}, ""),
        ({"environment": "LunarLander-v3"}, "LunarLander-v3 is not written in Tens"),
        ({"name": "reinforce"}, "the loop of REINFORCE trains one run"),
        ({"name": "bc", "environment": "Pendulum-v1"}, "the loop of "),
        ({"jit_compile": False}, "jit_compile is False"),
        ({"initial_run": "logs/run"}, "they begin with another run's weights"),
    ],
)
def test_runs_need_processes_for_a_reason(arguments, reason):
    found = sweeps.why_in_processes(member(**arguments).recipe)
    assert found.startswith(reason)
    assert bool(found) == bool(reason)


@pytest.mark.parametrize("name", registry.CLASSES)
def test_an_algorithm_supports_sweeps_if_its_loop_does(name):
    kind = registry.find(name)
    loop = getattr(train, kind.make_loop.__annotations__["return"].split(".")[1])
    assert kind.supports_sweep == getattr(loop, "supports_sweep", False)


def test_a_program_has_runs_of_all_seeds_and_live_settings():
    together = [
        member(seed=seed, gamma=gamma, learning_rate=rate)
        for seed in (1, 2)
        for gamma, rate in ((0.9, 1e-3), (0.95, 1e-3), (0.9, 2e-3))
    ]
    other = [member(seed=1, batch_size=8)]
    assert sweeps.programs([*together, *other]) == [together, other]
    annealed = [
        member(name="ppo", learning_rate=rate, final_learning_rate=last)
        for last in (0.0, None)
        for rate in (1e-3, 2e-3)
    ]
    # A schedule is another program than a constant; its last value may differ.
    assert sweeps.programs(annealed) == [annealed[:2], annealed[2:]]
    ends = [member(name="ppo", final_learning_rate=last) for last in (0.0, 1e-5)]
    assert sweeps.programs(ends) == [ends]


class Result(sweep_result.SweepResult):
    """Curves of runs that no one has trained; the last run has diverged."""

    def pace(self):
        return 0.5 * len(self.seeds)

    def save_policy(self, run, path):
        path.mkdir(exist_ok=True)
        (path / "saved_model.pb").write_text(str(self.seeds[run]))


@pytest.fixture
def trained(monkeypatch):
    """The arguments of each `train.sweep`, which trains nothing here."""
    calls = []

    def sweep(make_loop, seeds, hyperparameters, *, callback, **arguments):
        calls.append((seeds, hyperparameters, arguments))
        returns = np.arange(2.0 * len(seeds)).reshape(-1, 2)
        losses = np.ones_like(returns)
        losses[-1, -1] = np.nan
        for iteration in (10, 20):
            callback(iteration, returns[:, 0])
        steps = np.full(returns.shape, [100, 200])
        iterations = np.array([10, 20])
        curves = iterations, steps, returns, losses, np.array([80.0, 20.0])
        return Result(tuple(seeds), {}, *curves, None, [], [])

    monkeypatch.setattr(train, "sweep", sweep)
    monkeypatch.setattr(sweeps, "_make_loop", lambda recipe, differing: None)
    return calls


def members_in(folder, seeds, **values):
    values = {"num_iterations": 20, "eval_interval": 10, **values}
    return [member(folder / f"seed_{seed}", seed=seed, **values) for seed in seeds]


def test_each_run_has_its_outputs_and_only_missing_runs_are_trained(
    trained, tmp_path, capsys
):
    sweeps.train_in_one_program(members_in(tmp_path, [3, 4]), tmp_path / "programs")
    printed = capsys.readouterr().err
    assert "iteration 20 of 20, 0 s: median return 1.0 (quartiles 0.5 and" in printed
    assert "environment steps a second, all together." in printed
    assert f"{tmp_path / 'seed_4'}: diverged, and has no policy." in printed
    for seed, returns in ((3, [0, 1]), (4, [2, 3])):
        folder = tmp_path / f"seed_{seed}"
        config = json.loads((folder / "config.json").read_text())
        assert (config["algorithm"], config["seed"]) == ("dqn", seed)
        with open(folder / "metrics.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [float(row["evaluation_return"]) for row in rows] == returns
        assert [row["iteration"] for row in rows] == ["10", "20"]
        assert [row["environment_steps"] for row in rows] == ["100", "200"]
        assert [float(row["training_seconds"]) for row in rows] == [5, 10]
    assert (tmp_path / "seed_3" / "policy" / "saved_model.pb").read_text() == "3"
    assert not (tmp_path / "seed_4" / "policy").exists()

    sweeps.train_in_one_program(members_in(tmp_path, [3, 4]), tmp_path / "programs")
    assert len(trained) == 1
    sweeps.train_in_one_program(members_in(tmp_path, [3, 4, 5]), tmp_path / "programs")
    longer = members_in(tmp_path, [3, 4], num_iterations=30)
    sweeps.train_in_one_program(longer, tmp_path / "programs")
    again = members_in(tmp_path, [5])
    shutil.rmtree(tmp_path / "seed_5")
    sweeps.train_in_one_program(again, tmp_path / "programs")
    assert [seeds for seeds, *_ in trained] == [[3, 4], [5], [3, 4], [5]]
    # The same runs go on from the same checkpoint.
    places = [arguments["directory"] for *_, arguments in trained]
    assert places[0] == places[2] != places[1] == places[3]
    config = json.loads((tmp_path / "seed_3" / "config.json").read_text())
    assert config["num_iterations"] == 30


def test_live_settings_that_differ_are_told_to_the_program(trained, tmp_path):
    members = [
        member(tmp_path / str(rate), learning_rate=rate, gamma=1 - rate)
        for rate in (1e-3, 2e-3)
    ]
    sweeps.train_in_one_program(members, tmp_path / "programs")
    ((seeds, swept, _),) = trained
    assert (seeds, swept) == (
        [0, 0],
        {"learning_rate": [1e-3, 2e-3], "gamma": [1 - 1e-3, 1 - 2e-3]},
    )


def test_a_folder_of_another_run_is_refused(trained, tmp_path):
    sweeps.train_in_one_program(members_in(tmp_path, [3]), tmp_path / "programs")
    with pytest.raises(train.RunDirectoryError, match="gamma: was"):
        sweeps.train_in_one_program(
            members_in(tmp_path, [3], gamma=0.5), tmp_path / "programs"
        )


@pytest.mark.parametrize(
    ("seconds", "said"),
    [([80.0], "include"), ([80.0, 20.0], "leave out"), ([np.nan, 20.0], "include")],
)
def test_a_sweep_says_whether_its_seconds_hold_the_compilation(seconds, said):
    assert sweeps.about_seconds(np.array(seconds)).split("runs ")[1].startswith(said)


@pytest.mark.slow  # A question of every algorithm.
@pytest.mark.parametrize(
    "name", [name for name in registry.CLASSES if registry.find(name).supports_sweep]
)
def test_one_program_can_train_many_runs_of_an_algorithm(name):
    kind = registry.find(name)
    is_continuous = kind.actions in ("continuous", "vector")
    environment = "Pendulum-v1" if is_continuous else "CartPole-v1"
    if issubclass(kind, bandits.Bandit):
        environment = kind.environment_name
    made = sweeps._make_loop(member(name=name, environment=environment).recipe, ())
    assert members_lib._check_loop(made) is made.environment
