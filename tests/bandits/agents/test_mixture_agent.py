"""Mixtures: each agent learns from its own rows, and shares follow the rewards."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tests.bandits import bandit_data as data
from tests.pairs import some_slow
from tfrl import networks, testing, train
from tfrl.bandits import agents
from tfrl.bandits.environments import problems
from tfrl.environments import native
from tfrl.policies.utils import PolicyInfo
from tfrl.trajectories import time_step as ts

SPECS = data.time_step_spec(2), data.action_spec(3)
SHARES = (0.2, 0.5, 0.3)


def _parts():
    network = networks.QNetwork(*_network_specs(), fc_layer_params=(), seed=0)
    return [
        agents.LinearUCBAgent(*SPECS),
        agents.NeuralEpsilonGreedyAgent(
            *SPECS, network, keras.optimizers.SGD(0.1), epsilon=0.5, seed=1
        ),
        agents.BernoulliThompsonSamplingAgent(*SPECS, seed=2),
    ]


def _network_specs():
    return SPECS[0].observation, SPECS[1]


def _static(**kwargs):
    shares = tfp.distributions.Categorical(probs=SHARES)
    return agents.StaticMixtureAgent(shares, _parts(), seed=0, **kwargs)


def _rounds(choice, rows=slice(None), number=12):
    x, action, reward = (each[rows] for each in data.rows(number, 2, 3))
    info = {
        "mixture_agent_id": tf.constant(choice[rows][np.newaxis]),
        "subpolicy_info": PolicyInfo(),
    }
    return data.experience(x[np.newaxis], action[np.newaxis], reward[np.newaxis], info)


CHOICE = np.array([0, 1, 2] * 4, np.int32)


def _alone(agent, k):
    frames = _rounds(CHOICE, k == CHOICE)
    agent.train(frames._replace(policy_info=PolicyInfo()))


@pytest.mark.parametrize("compiles", some_slow([False, True], fast=[True]))
def test_each_agent_learns_from_its_own_rows(compiles):
    mixture, alone = _static(), _parts()
    step = mixture.train
    if compiles:
        step = tf.function(step, autograph=False, jit_compile=True)
    step(_rounds(CHOICE))
    for k, agent in enumerate(alone):
        _alone(agent, k)
        for own, expected in zip(
            mixture.agents[k].variables, agent.variables, strict=True
        ):
            if own.dtype.is_floating:
                np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-6)
    assert int(mixture.train_step_counter) == 1


def _start(number):
    return ts.restart(tf.ones([number, 2]), batch_size=number)


def test_actions_are_those_of_the_drawn_policies_and_their_probabilities_mix():
    policy = _static(emit_log_probability=True).policy
    step = policy.action(_start(3000), seed=3)
    choice = step.info["mixture_agent_id"].numpy()
    np.testing.assert_allclose(np.bincount(choice) / 3000, SHARES, atol=0.03)
    exact = policy.distribution(_start(1)).action.probs_parameter().numpy()[0]
    action = step.action.numpy()
    np.testing.assert_allclose(np.bincount(action) / 3000, exact, atol=0.03)
    np.testing.assert_allclose(
        np.exp(step.info["log_probability"]), exact[action], rtol=1e-5
    )
    # LinUCB without rows takes the first of equal arms.
    assert not action[choice == 0].any()
    again = policy.action(_start(3000), seed=3)
    np.testing.assert_array_equal(action, again.action)


def test_exp3_sums_are_unbiased_and_forget():
    agent = agents.Exp3MixtureAgent(
        _parts(), forgetting=0.9, max_inverse_temperature=2.0, seed=0
    )
    shares = agent.policy._mixture_distribution
    agent.train(_rounds(CHOICE))
    _, _, reward = data.rows(12, 2, 3)
    missing = [(1 - reward[k == CHOICE]).sum() * 3 for k in range(3)]
    sums = 0.9 * (1 - np.array(missing))
    temperature = np.sqrt(12.0)
    expected = np.exp(sums / temperature) / np.exp(sums / temperature).sum()
    np.testing.assert_allclose(shares.probs_parameter(), expected, rtol=1e-4)


def test_the_argument_named_max_is_the_least_temperature():
    collection = agents.Exp3MixtureVariableCollection(3, [0.0, 10.0, 0.0])
    agent = agents.Exp3MixtureAgent(
        _parts(), collection, max_inverse_temperature=5.0, seed=0
    )
    shares = agent.policy._mixture_distribution.probs_parameter()
    assert float(shares[1] / shares[0]) == pytest.approx(np.exp(2.0), rel=1e-4)


@pytest.mark.slow
def test_the_better_agent_gets_more_rows():
    bandit = native.NativeEnvironment(problems.bernoulli([0.1, 0.9]), 4, seed=0)
    specs = bandit.time_step_spec(), bandit.action_spec()
    parts = [
        agents.Exp3Agent(*specs, learning_rate=0.0, seed=0),
        agents.Exp3Agent(*specs, learning_rate=0.1, seed=1),
    ]
    agent = agents.Exp3MixtureAgent(parts, max_inverse_temperature=50.0, seed=2)
    loop = train.OnPolicyLoop(
        bandit, agent, collect_steps_per_iteration=2, seed=0, jit_compile=True
    )
    loop.run(300)
    shares = agent.policy._mixture_distribution.probs_parameter().numpy()
    assert shares[1] > 0.8


def test_agents_with_other_specs_are_refused():
    other = agents.LinearUCBAgent(data.time_step_spec(2), data.action_spec(4))
    with pytest.raises(ValueError, match="action_spec of number 1: got"):
        agents.Exp3MixtureAgent([agents.LinearUCBAgent(*SPECS), other])


@pytest.mark.slow
class TestConformance(testing.AgentConformance):
    def make_agent(self):
        return agents.Exp3MixtureAgent(_parts()[::2], seed=0)
