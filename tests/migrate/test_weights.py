"""Weights of TF-Agents and of Acme, saved by `weights/make.py`."""

import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.acme.tf import networks as acme_networks
from tfrl.agents.sac import tanh_normal_projection_network
from tfrl.migrate import weights
from tfrl.networks import (
    actor_distribution_network,
    actor_distribution_rnn_network,
    actor_network,
    categorical_q_network,
    critic_network,
    q_network,
    q_rnn_network,
    sequential,
    value_network,
)
from tfrl.policies import actor_policy, greedy_policy, q_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

FOLDER = pathlib.Path(__file__).with_name("weights")
OBSERVATION = tf.TensorSpec((4,), tf.float32, "observation")
IMAGE = {"image": tf.TensorSpec((5, 5, 1)), "speed": tf.TensorSpec((3,))}
DISCRETE = tensor_spec.BoundedTensorSpec((), tf.int64, 0, 2, "action")
CONTINUOUS = tensor_spec.BoundedTensorSpec((2,), tf.float32, -2.0, 1.0, "action")
BOTH = ("checkpoint", "policy")


@pytest.fixture(scope="module")
def saved():
    with np.load(FOLDER / "expected.npz") as file:
        return dict(file)


def close(given, expected):
    np.testing.assert_allclose(given, expected, rtol=0, atol=1e-6)


def critic(**layers):
    return critic_network.CriticNetwork((OBSERVATION, CONTINUOUS), **layers)


@pytest.mark.parametrize("kind", BOTH)
def test_values_and_actions_of_a_q_network(saved, kind):
    net = q_network.QNetwork(OBSERVATION, DISCRETE, fc_layer_params=(4, 4))
    read = weights.load(net, FOLDER / "dqn" / kind)
    assert len(read) == 6
    assert not any("target" in key for key in read.values())
    close(net(saved["inputs"])[0], saved["dqn/values"])
    steps = ts.restart(tf.constant(saved["inputs"]), 5)
    policy = greedy_policy.GreedyPolicy(
        q_policy.QPolicy(ts.time_step_spec(OBSERVATION), DISCRETE, net)
    )
    np.testing.assert_array_equal(policy.action(steps).action, saved["dqn/actions"])


def test_the_target_is_read_if_it_is_named(saved):
    net = q_network.QNetwork(OBSERVATION, DISCRETE, fc_layer_params=(4, 4))
    read = weights.load(net, FOLDER / "dqn/checkpoint", name="_target_q_network")
    assert all("_target_q_network" in key for key in read.values())
    assert np.abs(net(saved["inputs"])[0] - saved["dqn/values"]).max() > 1e-2


def test_preprocessing_and_convolutions(saved):
    net = q_network.QNetwork(
        IMAGE,
        DISCRETE,
        preprocessing_layers={
            "image": keras.layers.Conv2D(2, 3),
            "speed": keras.Sequential(
                [keras.layers.Dense(9), keras.layers.Reshape((3, 3, 1))]
            ),
        },
        preprocessing_combiner=keras.layers.Concatenate(),
        conv_layer_params=((2, 3, 2),),
        fc_layer_params=(4,),
    )
    weights.load(net, FOLDER / "images/checkpoint")
    images = {name: saved[f"images/{name}"] for name in IMAGE}
    close(net(images)[0], saved["images/values"])


@pytest.mark.parametrize("kind", [*BOTH, "list"])
def test_a_normal_distribution_and_a_value_network(saved, kind, tmp_path):
    actor = actor_distribution_network.ActorDistributionNetwork(
        OBSERVATION, CONTINUOUS, fc_layer_params=(4,)
    )
    value = value_network.ValueNetwork(OBSERVATION, fc_layer_params=(4,))
    for net in (actor, value):
        weights.load(net, FOLDER / "ppo" / kind)
    distribution = actor(saved["inputs"])[0]
    close(distribution.mean(), saved["ppo/mean"])
    close(distribution.stddev(), saved["ppo/stddev"])
    close(value(saved["inputs"])[0], saved["ppo/values"])


def test_actions_of_an_actor(saved):
    net = actor_network.ActorNetwork(OBSERVATION, CONTINUOUS, fc_layer_params=(4, 4))
    weights.load(net, FOLDER / "ddpg/checkpoint")
    policy = actor_policy.ActorPolicy(
        ts.time_step_spec(OBSERVATION), CONTINUOUS, net, training=False
    )
    steps = ts.restart(tf.constant(saved["inputs"]), 5)
    close(policy.action(steps).action, saved["ddpg/actions"])


def test_a_critic(saved):
    net = critic(
        observation_fc_layer_params=(4,),
        action_fc_layer_params=(3,),
        joint_fc_layer_params=(4,),
    )
    weights.load(net, FOLDER / "ddpg/checkpoint")
    close(net((saved["inputs"], saved["ddpg/actions"]))[0], saved["ddpg/values"])


def test_a_squashed_distribution_and_critics_by_their_names(saved):
    actor = actor_distribution_network.ActorDistributionNetwork(
        OBSERVATION,
        CONTINUOUS,
        fc_layer_params=(4,),
        continuous_projection_net=(
            tanh_normal_projection_network.TanhNormalProjectionNetwork
        ),
    )
    weights.load(actor, FOLDER / "sac/checkpoint")
    mode = actor(saved["inputs"])[0].mode()
    close(mode, saved["sac/actions"])
    net = critic(joint_fc_layer_params=(4,))
    for number in (1, 2):
        weights.load(net, FOLDER / "sac/checkpoint", name=f"_critic_network_{number}")
        values = net((saved["inputs"], mode))[0]
        close(values, saved[f"sac/values_{number}"])
    with pytest.raises(ValueError, match=r"_critic_network_1, .*_critic_network_2"):
        weights.load(net, FOLDER / "sac/checkpoint")


@pytest.mark.parametrize("kind", BOTH)
def test_an_lstm(saved, kind):
    net = q_rnn_network.QRnnNetwork(
        OBSERVATION,
        DISCRETE,
        input_fc_layer_params=(4,),
        lstm_size=(3,),
        output_fc_layer_params=(4,),
    )
    weights.load(net, FOLDER / "lstm" / kind)
    close(net(saved["sequences"], saved["step_types"])[0], saved["lstm/values"])


def test_stacked_cells_and_discrete_actions(saved):
    net = actor_distribution_rnn_network.ActorDistributionRnnNetwork(
        OBSERVATION,
        DISCRETE,
        input_fc_layer_params=(4,),
        lstm_size=(3, 3),
        output_fc_layer_params=None,
    )
    weights.load(net, FOLDER / "stacked/checkpoint")
    logits = net(saved["sequences"], saved["step_types"])[0].logits
    close(logits, saved["stacked/logits"])


def test_layers_of_keras(saved):
    net = sequential.Sequential(
        [
            keras.layers.Dense(4, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(4),
            keras.layers.LayerNormalization(),
            keras.layers.Dense(3),
        ],
        input_spec=OBSERVATION,
    )
    weights.load(net, FOLDER / "layers/checkpoint")
    close(net(saved["inputs"])[0], saved["layers/values"])


def test_a_categorical_network(saved):
    net = categorical_q_network.CategoricalQNetwork(
        OBSERVATION, DISCRETE, num_atoms=5, fc_layer_params=(4,)
    )
    weights.load(net, FOLDER / "c51/checkpoint")
    close(net(saved["inputs"])[0], saved["c51/logits"])


@pytest.mark.parametrize("folder", ["policy", "checkpoint"])
def test_a_policy_of_acme(saved, folder):
    net = acme_networks.Sequential(
        [
            acme_networks.LayerNormMLP((4, 4, 4), activate_final=True),
            acme_networks.MultivariateNormalDiagHead(2),
        ]
    )
    net(saved["inputs"])
    weights.load(net, FOLDER / "acme" / folder)
    distribution = net(saved["inputs"])[0]
    close(distribution.mean(), saved["acme/mean"])
    close(distribution.stddev(), saved["acme/stddev"])


@pytest.mark.parametrize("folder", ["recurrent", "checkpoint"])
def test_a_recurrent_network_of_acme(saved, folder):
    net = acme_networks.DeepRNN(
        [
            keras.layers.Dense(4),
            keras.layers.LSTMCell(3),
            keras.layers.Dense(4, activation="relu"),
            keras.layers.Dense(3),
        ],
    )
    inputs = saved["sequences"]
    state = net.get_initial_state(5)
    net(inputs[:, 0], network_state=state)
    weights.load(net, FOLDER / "acme" / folder)
    for step in range(3):
        values, state = net(inputs[:, step], network_state=state)
        close(values, saved["acme/values"][:, step])


def test_what_does_not_fit_is_named_and_nothing_is_read(saved):
    net = q_network.QNetwork(OBSERVATION, DISCRETE, fc_layer_params=(4, 6))
    net.create_variables()
    before = net(saved["inputs"])[0]
    with pytest.raises(ValueError, match="the nearest is agent/_q_network") as error:
        weights.load(net, FOLDER / "dqn/checkpoint", name="q_network")
    lines = str(error.value).splitlines()[1:]
    assert lines[0].startswith("QNetwork/EncodingNetwork/dense")
    assert lines[0].endswith(
        "got (4, 4) of agent/_q_network/_encoder/_postprocessing_layers/2/kernel, "
        "expected (4, 6)"
    )
    assert len(lines) == 3
    close(net(saved["inputs"])[0], before)


@pytest.mark.parametrize("missing", ["", "nowhere", "ckpt-7"])
def test_a_folder_without_weights_is_told(tmp_path, missing):
    net = value_network.ValueNetwork(OBSERVATION, fc_layer_params=(4,))
    with pytest.raises(ValueError, match=r"path: got .*, expected the folder"):
        weights.load(net, tmp_path / missing)


def test_a_layer_without_variables_is_told():
    with pytest.raises(ValueError, match="network: got Dense without variables"):
        weights.load(keras.layers.Dense(3), FOLDER / "dqn/checkpoint")
