"""The benchmark of environments in JAX: its settings, and its programs in JAX."""

import pytest

from benchmarks import jax as benchmark
from benchmarks import processes
from benchmarks.workers import minatar_settings
from tfrl.algorithms import registry


def test_the_settings_are_those_of_the_algorithms():
    for name, settings in minatar_settings.ALGORITHMS.items():
        assert settings.keys() <= registry.find(name).setting_fields().keys()


def test_libraries_that_are_missing_are_left_out(monkeypatch):
    played = (("json", "a/here", 8), ("no_such_module", "b/missing", 8))
    monkeypatch.setattr(benchmark, "_PLAYED", played)
    titles = [group.title for group in benchmark.groups(quick=False)]
    assert titles[0] == "random play in 8 of a/here"
    assert not any("b/missing" in title for title in titles)
    assert [title.split()[0] for title in titles[1:]] == ["PPO", "PQN", "DQN"]


def test_each_contender_has_a_system():
    for group in benchmark.groups(quick=False):
        ours, theirs = group.contenders
        assert ours.is_ours
        assert not theirs.is_ours
        assert theirs.system in processes.SYSTEMS


@pytest.mark.parametrize("by_products", [True, False])
def test_a_network_in_jax_is_the_written_out_sum(by_products):
    jax = pytest.importorskip("jax")
    import numpy as np

    from benchmarks.workers import jax_networks

    network = jax_networks.make(jax.random.PRNGKey(0), (5, 5, 2), (7,), 3, filters=4)
    x = np.random.default_rng(0).normal(size=(2, 5, 5, 2)).astype(np.float32)
    (kernel, _), (dense, _), (out, _) = jax.device_get(network)
    images = np.zeros((2, 3, 3, 4), np.float32)
    for i in range(3):
        for j in range(3):
            images[:, i, j] = np.einsum(
                "bhwc,hwcf->bf", x[:, i : i + 3, j : j + 3], kernel
            )
    hidden = np.maximum(np.maximum(images, 0).reshape(2, -1) @ dense, 0)
    found = jax_networks.apply(network, x, jax.nn.relu, by_products=by_products)
    np.testing.assert_allclose(found, hidden @ out, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("minatar", [False, True])
def test_programs_in_jax_count_their_steps(minatar):
    pytest.importorskip("gymnax")
    from benchmarks.workers import with_jax

    task = with_jax.ppo(envs=8, steps=16, minatar=minatar)
    counts = task.run(1)
    assert counts["environment steps"] == counts["iterations"] * 8 * 16


@pytest.mark.slow
def test_random_play_in_jax_counts_its_steps():
    pytest.importorskip("gymnax")
    from benchmarks.workers import with_jax_environments

    task = with_jax_environments.random_play("gymnax/CartPole-v1", 8)
    assert task.run(5) == {"iterations": 5, "environment steps": 40}
    assert task.facts["first call"] > 0
