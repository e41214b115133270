"""JaxMARL's environments, whose agents are members, beside the library alone."""

import numpy as np
import pytest

from tfrl.environments import native
from tfrl.environments.native.jax_environments import loading

TEAMS, STEPS = 3, 60
NAMES = (
    "MPE_simple_spread_v3",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("HeuristicEnemySMAX", "overcooked")
    ),
)


def keys(random):
    """Returns the keys that the programs make of random numbers."""
    from tests.environments.native.jax_environments import test_equality

    return test_equality._keys(random)


@pytest.fixture(autouse=True)
def library():
    pytest.importorskip("jax")
    pytest.importorskip("jaxmarl")


@pytest.mark.parametrize("name", NAMES)
def test_agents_see_and_are_paid_what_the_library_says(name):
    import jax
    import jaxmarl

    dynamics = loading.load(f"jaxmarl/{name}")
    environment = jaxmarl.make(name)
    agents, size = environment.agents, TEAMS * dynamics.members
    assert dynamics.members == len(agents)
    rng = np.random.default_rng(0)

    def draw(columns):
        random = rng.uniform(size=(size, columns)).astype(np.float32)
        return random, keys(random[:: len(agents)])

    def rows(by_agent):
        together = np.stack([np.asarray(by_agent[x]) for x in agents], 1)
        return together.reshape(size, *together.shape[2:])

    def seen(state):
        found = dynamics.observation(state)
        return found["observation"] if isinstance(found, dict) else found

    random, key = draw(dynamics.num_initial_randoms)
    state = dynamics.restart(dynamics.initial(random), np.ones(size, bool), random)
    observation, own = jax.vmap(environment.reset)(key)
    np.testing.assert_allclose(seen(state), rows(observation), rtol=1e-5, atol=1e-6)
    step, ended = jax.jit(jax.vmap(environment.step_env)), 0
    for _ in range(STEPS):
        random, key = draw(dynamics.num_step_randoms)
        masks = dynamics.observation(state)
        if isinstance(masks, dict):
            actions = rng.uniform(size=masks["action_mask"].shape)
            action = np.int32((actions * masks["action_mask"].numpy()).argmax(-1))
        else:
            action = rng.integers(0, dynamics.action_spec.maximum + 1, size, np.int32)
        chosen = dict(zip(agents, action.reshape(TEAMS, -1).T, strict=True))
        observation, own, reward, ends, _ = step(key, own, chosen)
        after = dynamics.step(state, action, random)
        state = after.state
        np.testing.assert_allclose(seen(state), rows(observation), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(after.reward, rows(reward), rtol=1e-4, atol=1e-5)
        over = np.repeat(np.asarray(ends["__all__"]), len(agents))
        np.testing.assert_array_equal(after.terminated | after.truncated, over)
        ended += over.sum()
        if over.any():
            break
    assert ended or name == "overcooked"
    if name.startswith("MPE"):
        assert after.truncated.numpy().all()  # After 25 steps.


def test_a_batch_of_another_size_is_refused():
    with pytest.raises(ValueError, match="a multiple of the 3 agents"):
        native.NativeEnvironment(loading.load("jaxmarl/MPE_simple_spread_v3"), 4)


def test_agents_that_differ_are_an_error():
    with pytest.raises(ValueError, match=r"agents differ: they see \(16,\), .*\(14,\)"):
        loading.load("jaxmarl/MPE_simple_tag_v3")
