"""Critics that see another part of observations than actors."""

import runpy

import gymnasium
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

import tfrl
from tfrl.drivers import dynamic_step_driver
from tfrl.eval import evaluate
from tfrl.policies import policy_saver

SETTINGS = {
    "PPO": {
        "preset": "ppo_pendulum",
        "num_envs": 2,
        "collect_steps_per_iteration": 16,
        "minibatch_size": 16,
        "num_epochs": 2,
        "gsde_sample_freq": 0,
    },
    "A2C": {"preset": "a2c", "num_envs": 2},
    "SAC": {"preset": "sac", "initial_collect_steps": 10},
    "TD3": {"preset": "td3", "initial_collect_steps": 10},
}


class Parts(gymnasium.ObservationWrapper):
    """Pendulum, whose critics see all; `num_seen` numbers are for the actor."""

    def __init__(self, num_seen=3):
        super().__init__(gymnasium.make("Pendulum-v1"))
        self.num_seen = num_seen
        whole = self.env.observation_space
        seen = spaces.Box(whole.low[:num_seen], whole.high[:num_seen])
        self.observation_space = spaces.Dict(
            {"observation": seen, "critic_observation": whole}
        )

    def observation(self, observation):
        return {
            "observation": observation[: self.num_seen],
            "critic_observation": observation,
        }


def make(name, environment, **settings):
    settings = {**SETTINGS[name], "seed": 3, "jit_compile": False, **settings}
    return getattr(tfrl, name)(environment, **settings)


def weights(algorithm):
    return [variable.numpy() for variable in algorithm.agent.variables()]


@pytest.mark.parametrize(
    "name",
    ["PPO", *(pytest.param(x, marks=pytest.mark.slow) for x in ("A2C", "SAC", "TD3"))],
)
def test_equal_observations_give_the_weights_of_the_ordinary_agent(name):
    apart = make(name, Parts, normalize_observations=False)
    ordinary = make(
        name, lambda: gymnasium.make("Pendulum-v1"), normalize_observations=False
    )
    for algorithm in (apart, ordinary):
        algorithm.learn(64, progress=False)
    for one, other in zip(weights(apart), weights(ordinary), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def blind():
    """An actor that does not see the velocity."""
    return make("PPO", lambda: Parts(num_seen=2), normalize_observations=True)


def test_networks_have_the_sizes_of_their_parts(blind):
    agent = blind.agent
    kernels = [
        network.trainable_variables[0].shape
        for network in (agent.actor_net, agent.value_net)
    ]
    assert kernels == [(2, 64), (3, 64)]


def test_actions_do_not_depend_on_what_critics_see(blind):
    seen = np.float32([0.6, 0.8])
    given = [
        {"observation": seen, "critic_observation": np.float32([0.6, 0.8, x])}
        for x in (-8, 8)
    ]
    time_steps = [
        tfrl.trajectories.restart(tf.nest.map_structure(lambda x: x[None], x), 1)
        for x in given
    ]
    collect = blind.agent.collect_policy
    one, other = (collect.action(x, seed=1) for x in time_steps)
    np.testing.assert_array_equal(one.action, other.action)
    values = [
        blind.agent.value_net(x.observation, step_type=x.step_type)[0].numpy()
        for x in time_steps
    ]
    assert values[0] != values[1]
    # The policy that is saved takes the actor's part alone, and drops the other.
    expected, _ = blind.predict({"observation": seen})
    for observation in given:
        np.testing.assert_array_equal(blind.predict(observation)[0], expected)
    np.testing.assert_array_equal(
        blind.policy.action(time_steps[0]).action[0], expected
    )


def test_a_saved_policy_needs_the_actors_part_alone(blind, tmp_path):
    path = tmp_path / "policy.py"
    blind.export(path, "numpy")
    seen = np.float32([[0.6, -0.8]])
    act = runpy.run_path(str(path))["act"]
    expected, _ = blind.predict({"observation": seen})
    found = act({"observation/observation": seen})
    np.testing.assert_allclose(found["action"], expected, atol=1e-6)


def test_a_policy_that_was_loaded_plays_where_there_are_both_parts(blind, tmp_path):
    policy_saver.PolicySaver(blind.policy).save(str(tmp_path / "policy"))
    loaded = tf.saved_model.load(str(tmp_path / "policy"))
    found = []
    for policy in (loaded, blind.policy):
        environment = blind.world.make_evaluation(1, 5)
        found.append(evaluate.Evaluator(environment, policy, 1, seed=0).run().mean)
    np.testing.assert_allclose(*found, rtol=1e-4)
    driver = dynamic_step_driver.DynamicStepDriver(environment, loaded, num_steps=2)
    assert not driver.run()[0].is_first()


def test_the_environment_with_both_parts_evaluates_the_policy(blind):
    assert -2000 < blind.evaluate(2).mean < 0


def test_an_algorithm_without_critics_of_its_own_refuses_the_part():
    with pytest.raises(ValueError, match=r"'critic_observation'.*train PPO, A2C, SAC"):
        _ = tfrl.DQN(Parts, num_action_bins=3).agent


def test_layers_cannot_be_shared_between_two_parts():
    with pytest.raises(ValueError, match="share_layers: expected False"):
        _ = make("PPO", Parts, share_layers=True).agent
