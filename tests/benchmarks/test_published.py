"""Published results, and which of them is a row's reference."""

import dataclasses

import pytest

from benchmarks import published, scores

PPO = published.Figure(
    source="rl-zoo3",
    algorithm="PPO",
    environment="Ant-v3",
    steps=1_000_000,
    value=1327.158,
    runs=1,
    kind="final",
    actions="greedy",
)


def like(**fields):
    return dataclasses.replace(PPO, **fields)


def test_the_reference_is_the_best_result_in_as_many_steps():
    best = like(source="Tianshou", value=3258.4, kind="best", runs=10)
    longer = like(value=4079.3, steps=3_000_000)
    assert published.reference([PPO, best, longer], 999_631) is best
    assert published.reference([PPO, longer], 999_631) is PPO
    # A tenth more counts as the same.
    assert published.reference([PPO], 910_000) is PPO
    assert published.reference([PPO], 900_000) is None
    assert published.reference([], 1e6) is None


def test_of_equal_results_the_one_that_gives_a_verdict_counts():
    training = like(value=500, kind="training", actions="exploring", runs=9)
    one, five = like(value=500), like(value=500, runs=5)
    assert published.reference([training, one, five], 1e6) is five


def test_results_are_of_an_algorithm_and_of_any_version_of_an_environment():
    other = like(algorithm="TRPO")
    longer_name = like(environment="AntMaze-v3")
    newer, bare = like(environment="Ant-v4"), like(environment="Ant")
    found = published.of([PPO, other, longer_name, newer, bare], "PPO", "Ant-v5")
    assert found == (PPO, newer, bare)


def test_the_settings_source_is_found_by_its_name():
    tianshou = like(source="Tianshou")
    settings = "rl-zoo3, with Adam"
    longer, longest = (like(steps=3_000_000), like(steps=5_000_000, value=9999))
    assert published.of_settings([tianshou, PPO, longer], settings, 1e6) is PPO
    # Without one in as many steps, the one of the fewest.
    assert published.of_settings([tianshou, longest, longer], settings, 1e6) is longer
    assert published.of_settings([tianshou], settings, 1e6) is None
    assert published.of_settings([PPO], "chosen on seeds from 100 up", 1e6) is None


@pytest.mark.parametrize(
    ("fields", "obstacle"),
    [
        ({}, ""),
        ({"kind": "best"}, "best evaluations"),
        ({"kind": "training", "actions": "exploring"}, "training returns"),
        ({"actions": "unstated"}, "actions unstated"),
        ({"kind": "data", "actions": "exploring"}, ""),
    ],
)
def test_only_final_greedy_returns_give_a_verdict(fields, obstacle):
    assert like(**fields).obstacle == obstacle


def test_a_row_names_what_differs_from_it():
    assert PPO.text("Ant-v3", 1e6) == "1327.2 (rl-zoo3, one run)"
    assert PPO.text("Ant-v5", 1e6) == "1327.2 (rl-zoo3, one run, v3)"
    best = like(source="Tianshou", kind="best", runs=10, value=-4.1)
    assert best.text("Ant-v5", 3e5) == (
        "-4.1 (Tianshou, 10 runs, best evaluations, 1,000,000 steps, v3)"
    )
    assert like(value=0.964).text("Ant-v3", 1e6).startswith("0.964 ")
    data = like(source="the data", kind="data", value=-1123.0)
    assert data.text("Ant-v3", 1e6) == "-1123 (the data)"


def test_the_file_holds_what_its_sources_say():
    """One figure of each source, read again from its page."""
    found = {
        (x.source, x.algorithm, x.environment, x.steps): (x.value, x.runs, x.kind)
        for x in published.read()
    }
    assert len(found) == len(published.read())
    million, final = 1_000_000, "final"
    for name, figure in {
        ("rl-zoo3", "DQN", "MountainCar-v0", 120_000): (-100.849, 1, final),
        ("rl-zoo3", "PPO", "Acrobot-v1", million): (-73.506, 1, final),
        ("sb3-contrib", "QR-DQN", "CartPole-v1", 50_000): (386, 5, final),
        ("Tianshou", "PPO", "Humanoid-v3", million): (787.1, 10, "best"),
        ("CleanRL", "C51", "CartPole-v1", 500_000): (481.2, 3, "training"),
        ("CleanRL", "PPO", "InvertedPendulum-v4", million): (963.09, 3, "training"),
        ("gymnax-blines", "PPO", "gymnax/Breakout-MinAtar", 959_936): (20.3, 1, final),
    }.items():
        assert found[name] == figure


@pytest.mark.parametrize(
    ("agent", "environment", "value"),
    [
        ("PPO", "Ant-v5", 3258.4),
        ("PPO", "Humanoid-v5", 787.1),
        ("PPO", "InvertedPendulum-v5", 1000),
        ("DQN", "MountainCar-v0", -100.849),
        ("QR-DQN", "CartPole-v1", 500),
        ("QR-DQN", "Acrobot-v1", -69.135),
    ],
)
def test_rows_have_the_best_published_figure(agent, environment, value):
    (row, *_) = (
        row
        for row in scores.read_rows()
        if (row["agent"], row["environment"]) == (agent, environment)
    )
    (entry,) = (entry for entry in scores.ENTRIES if entry.has(row))
    reference = published.reference(entry.figures, float(row["steps"]))
    assert reference.value == value


def test_every_source_of_published_settings_is_found():
    """Unless it publishes nothing on the environment."""
    for entry in scores.ENTRIES:
        settings = entry.settings_source()
        found = published.of_settings(entry.figures, settings, 1e6)
        if settings.startswith(("rl-zoo3", "CleanRL", "Tianshou", "gymnax-blines")):
            assert found is not None, entry
            assert settings.startswith(found.source)
