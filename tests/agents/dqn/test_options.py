"""Every value-based agent with every option, or an error that says why not."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import some_slow
from tfrl import agents, networks, testing
from tfrl.agents.dqn import Munchausen
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
VECTOR = tensor_spec.BoundedTensorSpec([3], tf.float32, -1.0, 1.0)
IMAGE = tensor_spec.BoundedTensorSpec([8, 8, 1], tf.uint8, 0, 255)
MASK = tensor_spec.BoundedTensorSpec([3], tf.int32, 0, 1)

# By agent: its class, its network and what the network's arguments are.
AGENTS = {
    "dqn": (agents.DqnAgent, networks.QNetwork, {}),
    "c51": (agents.CategoricalDqnAgent, networks.CategoricalQNetwork, {"num_atoms": 5}),
    "qr_dqn": (agents.QrDqnAgent, networks.QuantileQNetwork, {"num_quantiles": 5}),
    "iqn": (agents.IqnAgent, networks.ImplicitQuantileNetwork, {"num_quantiles": 5}),
}
NUMBERS = {"dqn": None, "c51": 5, "qr_dqn": 5}
# By option: the observation, arguments of the network, and of the agent.
OPTIONS = {
    "nothing": (VECTOR, {}, {}),
    "double_q": (VECTOR, {}, {"double_q": True}),
    "dueling": (VECTOR, {"dueling_layer_params": (4,)}, {}),
    "noisy": (VECTOR, {"noisy_stddev": 0.5}, {"epsilon_greedy": 0.0}),
    "n_step": (VECTOR, {}, {"n_step_update": 3}),
    "munchausen": (VECTOR, {}, {"munchausen": Munchausen()}),
    "boltzmann": (
        VECTOR,
        {},
        {"epsilon_greedy": None, "boltzmann_temperature": 0.5},
    ),
    "mask": (
        (VECTOR, MASK),
        {},
        {"observation_and_action_constraint_splitter": lambda x: x},
    ),
    "dict": (
        {"image": IMAGE, "vector": VECTOR},
        {
            "preprocessing_layers": {
                "image": keras.layers.Flatten(dtype="float32"),
                "vector": keras.layers.Dense(4),
            },
            "preprocessing_combiner": keras.layers.Concatenate(),
        },
        {},
    ),
    "image": (
        IMAGE,
        {
            "preprocessing_layers": keras.layers.Rescaling(1 / 255),
            "conv_layer_params": [(4, 3, 2)],
        },
        {},
    ),
    "recurrent": (VECTOR, {}, {}),
}
# DQN has every option. The others have fast tests of the options whose code asks what
# their networks predict for an action, or which they refuse.
FAST = {
    *(("dqn", option) for option in OPTIONS),
    ("c51", "double_q"),
    ("c51", "munchausen"),
    ("qr_dqn", "munchausen"),
    ("qr_dqn", "recurrent"),
    ("iqn", "dueling"),
    ("iqn", "recurrent"),
}
PAIRS = [
    pytest.param(
        agent, option, marks=[pytest.mark.slow] * ((agent, option) not in FAST)
    )
    for agent in AGENTS
    for option in OPTIONS
]
# What does not go together, and what the error says.
REFUSED = {
    ("c51", "munchausen"): (TypeError, "munchausen"),
    ("iqn", "recurrent"): (NotImplementedError, "IQN expects one without a state"),
}


def recurrent(agent, observation):
    numbers = NUMBERS.get(agent, 5)
    network = networks.QRnnNetwork(
        observation,
        ACTION,
        input_fc_layer_params=(4,),
        output_fc_layer_params=(4,),
        lstm_size=(3,),
        numbers_per_action=numbers,
        seed=1,
    )
    network.num_atoms = numbers
    return network


def make(agent, option="nothing", network_arguments=(), **arguments):
    kind, make_network, numbers = AGENTS[agent]
    observation, of_network, of_agent = OPTIONS[option]
    if agent == "dqn" and of_agent.get("double_q"):
        kind, of_agent = agents.DdqnAgent, {}
    if option == "recurrent":
        network = recurrent(agent, observation)
    else:
        network = make_network(
            observation[0] if option == "mask" else observation,
            ACTION,
            fc_layer_params=(6,),
            seed=1,
            **{**numbers, **of_network, **dict(network_arguments)},
        )
    of_iqn = {"num_quantiles": 3, "num_target_quantiles": 4} if agent == "iqn" else {}
    made = kind(
        ts.time_step_spec(observation),
        ACTION,
        network,
        keras.optimizers.SGD(0.1),
        **{"gamma": 0.9, "seed": 1, **of_iqn, **of_agent, **arguments},
    )
    made.initialize()
    return made


def experience(agent, seed=0):
    return testing.AgentConformance().make_experience(agent, 4, seed)


@pytest.mark.parametrize(("agent", "option"), PAIRS)
def test_every_agent_learns_with_every_option_or_says_why_not(agent, option):
    if (agent, option) in REFUSED:
        error, message = REFUSED[agent, option]
        with pytest.raises(error, match=message):
            make(agent, option)
        return
    made = make(agent, option)
    batch = experience(made)
    # As prioritized replay calls it: weights in, errors of the examples out.
    weights = tf.constant([1.0, 0.5, 2.0, 1.0])
    before = [v.numpy() for v in made._q_network.trainable_variables]
    info = made.train(batch, weights)
    assert np.isfinite(info.loss)
    assert info.extra.td_error.shape[0] == info.extra.td_loss.shape[0] == 4
    after = [v.numpy() for v in made._q_network.trainable_variables]
    assert any(np.any(x != y) for x, y in zip(before, after, strict=True))
    again = make(agent, option).train(batch, weights)
    np.testing.assert_array_equal(info.loss, again.loss)


def moved(agent, by=0.3):
    """Moves the online network away from the target network."""
    for variable in agent._q_network.trainable_variables:
        variable.assign(variable + by * np.sign(np.cos(np.arange(variable.shape[-1]))))
    return agent


@pytest.mark.parametrize("agent", some_slow(AGENTS, fast=["dqn", "iqn"]))
def test_double_q_changes_the_next_action_alone(agent):
    plain, double = make(agent), make(agent, "double_q")
    batch = experience(plain)
    # With equal networks, both choose the same actions.
    np.testing.assert_array_equal(plain.loss(batch).loss, double.loss(batch).loss)
    moved(plain, -1.0), moved(double, -1.0)
    next_step = batch.next_time_step if hasattr(batch, "next_time_step") else None
    next_step = next_step or plain._read.convert(batch).next_time_step
    ours = double._compute_next_q_values(next_step, ())
    theirs = plain._compute_next_q_values(next_step, ())
    online = plain._values_of(plain._apply_network(plain._q_network, next_step))
    target = plain._values_of(plain._apply_network(plain._target_q_network, next_step))
    same = np.argmax(online, -1) == np.argmax(target, -1)
    assert not same.all()
    np.testing.assert_array_equal(ours.numpy()[same], theirs.numpy()[same])
    assert not np.array_equal(ours, theirs)


@pytest.mark.slow
@pytest.mark.parametrize("agent", some_slow(AGENTS, fast=["dqn", "iqn"]))
def test_noise_changes_training_and_collecting_alone(agent):
    noisy = make(agent, "noisy")
    batch = experience(noisy)
    np.testing.assert_array_equal(noisy.loss(batch).loss, noisy.loss(batch).loss)
    losses = [noisy.loss(batch, training=True).loss.numpy() for _ in range(2)]
    assert losses[0] != losses[1]
    quiet = make(agent, "noisy", {"noisy_stddev": 0.0})
    for training in (False, True):
        np.testing.assert_allclose(
            quiet.loss(batch, training=training).loss, noisy.loss(batch).loss, rtol=1e-6
        )
    observations = np.random.default_rng(0).uniform(-1, 1, [200, 3]).astype("f4")
    time_step = ts.restart(tf.constant(observations), 200)
    greedy, collecting = (
        [policy.action(time_step).action.numpy() for _ in range(12)]
        for policy in (noisy.policy, noisy.collect_policy)
    )
    np.testing.assert_array_equal(greedy[0], greedy[1])
    assert any(np.any(one != greedy[0]) for one in collecting)


def test_noisy_layers_in_a_network_of_ones_own_collect_with_noise():
    layers = [networks.NoisyDense(4, "relu", seed=1), networks.NoisyDense(3, seed=2)]
    agent = agents.DqnAgent(
        ts.time_step_spec(VECTOR),
        ACTION,
        networks.Sequential(layers, VECTOR),
        None,
        epsilon_greedy=0.0,
        seed=1,
    )
    observations = np.random.default_rng(0).uniform(-1, 1, [200, 3]).astype("f4")
    time_step = ts.restart(tf.constant(observations), 200)
    collected = [agent.collect_policy.action(time_step).action for _ in range(12)]
    assert any(np.any(one != collected[0]) for one in collected)


@pytest.mark.parametrize(
    "agent", some_slow(["dqn", "qr_dqn", "iqn"], fast=["dqn", "qr_dqn"])
)
def test_munchausen_without_bonus_and_temperature_is_the_agent(agent):
    hard = Munchausen(alpha=0.0, temperature=1e-6)
    batch = experience(make(agent))
    plain, limit, usual = (
        make(agent, munchausen=munchausen).loss(batch).loss
        for munchausen in (None, hard, Munchausen())
    )
    np.testing.assert_allclose(limit, plain, rtol=1e-3)
    assert usual != plain


def test_munchausens_reward_and_target():
    agent = make("dqn", munchausen=Munchausen(0.8, 0.5, -0.6))
    moved(agent)
    batch = experience(agent)
    transition = agent._read.convert(batch)
    now, action, then = transition
    values, next_values = (
        agent._target_q_network(step.observation)[0].numpy() for step in (now, then)
    )
    pi, next_pi = (
        np.exp(x / 0.5) / np.exp(x / 0.5).sum(-1, keepdims=True)
        for x in (values, next_values)
    )
    taken = np.arange(4), action.action.numpy()
    bonus = 0.8 * np.clip(0.5 * np.log(pi[taken]), -0.6, 0)
    soft = (next_pi * (next_values - 0.5 * np.log(next_pi))).sum(-1)
    target = then.reward + bonus + 0.9 * then.discount * soft
    error = target - agent._q_network(now.observation)[0].numpy()[taken]
    valid = ~now.is_last().numpy()
    np.testing.assert_allclose(
        agent.loss(batch).extra.td_error, error * valid, rtol=1e-5, atol=1e-6
    )


def test_what_munchausen_is_not_defined_for():
    with pytest.raises(ValueError, match="n_step_update: expected 1 with munchausen"):
        make("dqn", munchausen=Munchausen(), n_step_update=3)
    with pytest.raises(ValueError, match="munchausen: expected None with double"):
        make("qr_dqn", munchausen=Munchausen(), double_q=True)
    with pytest.raises(ValueError, match="munchausen: expected None with double"):
        make("dqn", "double_q", munchausen=Munchausen())
    for name, number in (("alpha", 2.0), ("temperature", 0.0), ("lowest", 0.5)):
        with pytest.raises(ValueError, match=name):
            Munchausen(**{name: number})
