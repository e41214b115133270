"""Makes the files of this folder with TF-Agents 0.19, and with Acme 0.4.

    python -m benchmarks.peers tf_agents
    $TFRL_PEERS/tf_agents/bin/python -m pip install --no-deps \
        dm-acme==0.4.0 dm-env dm-sonnet tabulate trfl
    $TFRL_PEERS/tf_agents/bin/python tests/migrate/weights/make.py

Each agent is made with random weights. Its checkpoint, and for some the variables of
its `PolicySaver`, are kept with what its networks give for some observations.
"""

import pathlib
import shutil
import sys
import tempfile
from unittest import mock

import numpy as np
import sonnet as snt
import tensorflow as tf
from tf_agents.agents.ddpg import actor_network, critic_network, ddpg_agent
from tf_agents.agents.dqn import dqn_agent
from tf_agents.agents.ppo import ppo_clip_agent
from tf_agents.agents.reinforce import reinforce_agent
from tf_agents.agents.sac import sac_agent, tanh_normal_projection_network
from tf_agents.networks import (
    actor_distribution_network,
    actor_distribution_rnn_network,
    categorical_q_network,
    q_network,
    q_rnn_network,
    sequential,
    value_network,
)
from tf_agents.policies import policy_saver
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts
from tf_agents.trajectories import trajectory
from tf_agents.utils import common

# Acme imports Launchpad, which no longer installs, for programs in several processes.
sys.modules["launchpad"] = mock.MagicMock()
from acme.tf import networks as acme_networks  # noqa: E402
from acme.tf import savers  # noqa: E402
from acme.tf import utils as acme_utils  # noqa: E402

HERE = pathlib.Path(__file__).parent
RANDOM = np.random.RandomState(0)
OBSERVATION = tf.TensorSpec((4,), tf.float32, "observation")
IMAGE = {"image": tf.TensorSpec((5, 5, 1)), "speed": tf.TensorSpec((3,))}
DISCRETE = tensor_spec.BoundedTensorSpec((), tf.int64, 0, 2, "action")
CONTINUOUS = tensor_spec.BoundedTensorSpec((2,), tf.float32, -2.0, 1.0, "action")
STEP = ts.time_step_spec(OBSERVATION)
INPUTS = RANDOM.normal(size=(5, 4)).astype(np.float32)
IMAGES = {
    "image": RANDOM.uniform(size=(5, 5, 5, 1)).astype(np.float32),
    "speed": RANDOM.normal(size=(5, 3)).astype(np.float32),
}
SEQUENCES = RANDOM.normal(size=(5, 3, 4)).astype(np.float32)
# The second sequence begins again in its middle.
STEP_TYPES = np.array([[0, 1, 1], [1, 0, 1], [0, 1, 1], [1, 1, 1], [0, 1, 1]], np.int32)
EXPECTED = {
    "inputs": INPUTS,
    "sequences": SEQUENCES,
    "step_types": STEP_TYPES,
    **{f"images/{name}": value for name, value in IMAGES.items()},
}


def adam():
    """Returns the optimizer of all agents."""
    return tf.keras.optimizers.Adam(1e-2)


def shuffle(*networks):
    """Gives networks random weights, also biases."""
    for network in networks:
        network.create_variables()
        for variable in network.variables:
            scale = 0.5 if "variance" in variable.name else 0.0
            values = RANDOM.normal(size=variable.shape) * 0.4
            variable.assign(abs(values) + scale if scale else values)


def save(name, agent, with_policy=False):
    """Writes the checkpoint of an agent, and the variables of its saved policy."""
    with tempfile.TemporaryDirectory() as folder:
        step = tf.compat.v1.train.get_or_create_global_step()
        saver = common.Checkpointer(folder, agent=agent, global_step=step)
        saver.save(step)
        keep(folder, HERE / name / "checkpoint")
    if with_policy:
        with tempfile.TemporaryDirectory() as folder:
            policy_saver.PolicySaver(agent.policy, batch_size=None).save(folder)
            keep(f"{folder}/variables", HERE / name / "policy" / "variables")


def keep(folder, target):
    """Copies the files of the newest checkpoint."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for file in pathlib.Path(folder).glob("*.*"):
        shutil.copy(file, target)
    newest = tf.train.latest_checkpoint(folder)
    if newest:
        # The state without times and folders.
        name = pathlib.Path(newest).name
        (target / "checkpoint").write_text(f'model_checkpoint_path: "{name}"\n')


def expect(name, **values):
    """Records what the networks of an agent give."""
    EXPECTED.update({f"{name}/{key}": np.asarray(x) for key, x in values.items()})


def dqn():
    """QNetwork, after two steps of training, with a target and a trained optimizer."""
    net = q_network.QNetwork(OBSERVATION, DISCRETE, fc_layer_params=(4, 4))
    agent = dqn_agent.DqnAgent(
        STEP, DISCRETE, q_network=net, optimizer=adam(), target_update_period=10
    )
    agent.initialize()
    shuffle(net)
    batch = trajectory.Trajectory(
        tf.ones((5, 2), tf.int32),
        tf.constant(SEQUENCES[:, :2]),
        tf.zeros((5, 2), tf.int64),
        (),
        tf.ones((5, 2), tf.int32),
        tf.ones((5, 2)),
        tf.ones((5, 2)),
    )
    for _ in range(2):
        agent.train(batch)
    action = agent.policy.action(ts.restart(INPUTS, 5)).action
    expect("dqn", values=net(INPUTS)[0], actions=action)
    save("dqn", agent, with_policy=True)


def images():
    """QNetwork with preprocessing, a combiner and convolutions, and C51's network."""
    layers = {
        "image": tf.keras.layers.Conv2D(2, 3),
        "speed": tf.keras.Sequential(
            [tf.keras.layers.Dense(9), tf.keras.layers.Reshape((3, 3, 1))]
        ),
    }
    net = q_network.QNetwork(
        IMAGE,
        DISCRETE,
        preprocessing_layers=layers,
        preprocessing_combiner=tf.keras.layers.Concatenate(),
        conv_layer_params=((2, 3, 2),),
        fc_layer_params=(4,),
    )
    agent = dqn_agent.DqnAgent(
        ts.time_step_spec(IMAGE), DISCRETE, q_network=net, optimizer=adam()
    )
    agent.initialize()
    shuffle(net)
    expect("images", values=net(IMAGES)[0])
    save("images", agent)


def ppo():
    """ActorDistributionNetwork with a normal distribution, and ValueNetwork."""
    actor = actor_distribution_network.ActorDistributionNetwork(
        OBSERVATION, CONTINUOUS, fc_layer_params=(4,)
    )
    value = value_network.ValueNetwork(OBSERVATION, fc_layer_params=(4,))
    agent = ppo_clip_agent.PPOClipAgent(
        STEP, CONTINUOUS, adam(), actor_net=actor, value_net=value, num_epochs=1
    )
    agent.initialize()
    shuffle(actor, value)
    distribution = actor(INPUTS, step_type=(), network_state=())[0]
    expect(
        "ppo",
        mean=distribution.mean(),
        stddev=distribution.stddev(),
        values=value(INPUTS)[0],
    )
    save("ppo", agent, with_policy=True)
    with tempfile.TemporaryDirectory() as folder:
        # Saved policies of TF-Agents 0.3 to 0.5 have nothing but this list.
        listed = tf.train.Checkpoint(model_variables=agent.policy.variables())
        listed.save(f"{folder}/ckpt")
        keep(folder, HERE / "ppo" / "list")


def ddpg():
    """ActorNetwork and CriticNetwork."""
    actor = actor_network.ActorNetwork(OBSERVATION, CONTINUOUS, fc_layer_params=(4, 4))
    critic = critic_network.CriticNetwork(
        (OBSERVATION, CONTINUOUS),
        observation_fc_layer_params=(4,),
        action_fc_layer_params=(3,),
        joint_fc_layer_params=(4,),
    )
    agent = ddpg_agent.DdpgAgent(STEP, CONTINUOUS, actor, critic, adam(), adam())
    agent.initialize()
    shuffle(actor, critic)
    actions = agent.policy.action(ts.restart(INPUTS, 5)).action
    expect("ddpg", actions=actions, values=critic((INPUTS, actions))[0])
    save("ddpg", agent)


def sac():
    """Two critics of the same shapes, and a squashed normal distribution."""
    actor = actor_distribution_network.ActorDistributionNetwork(
        OBSERVATION,
        CONTINUOUS,
        fc_layer_params=(4,),
        continuous_projection_net=(
            tanh_normal_projection_network.TanhNormalProjectionNetwork
        ),
    )
    critic = critic_network.CriticNetwork(
        (OBSERVATION, CONTINUOUS), joint_fc_layer_params=(4,)
    )
    agent = sac_agent.SacAgent(
        STEP,
        CONTINUOUS,
        critic_network=critic,
        actor_network=actor,
        actor_optimizer=adam(),
        critic_optimizer=adam(),
        alpha_optimizer=adam(),
    )
    agent.initialize()
    critics = agent._critic_network_1, agent._critic_network_2
    shuffle(actor, *critics)
    mode = actor(INPUTS, step_type=(), network_state=())[0].mode()
    values = [critic((INPUTS, mode))[0] for critic in critics]
    expect("sac", actions=mode, values_1=values[0], values_2=values[1])
    save("sac", agent)


def lstm():
    """QRnnNetwork."""
    net = q_rnn_network.QRnnNetwork(
        OBSERVATION,
        DISCRETE,
        input_fc_layer_params=(4,),
        lstm_size=(3,),
        output_fc_layer_params=(4,),
    )
    agent = dqn_agent.DqnAgent(STEP, DISCRETE, q_network=net, optimizer=adam())
    agent.initialize()
    shuffle(net)
    expect("lstm", values=net(SEQUENCES, STEP_TYPES)[0])
    save("lstm", agent, with_policy=True)


def stacked():
    """ActorDistributionRnnNetwork with two cells and discrete actions."""
    net = actor_distribution_rnn_network.ActorDistributionRnnNetwork(
        OBSERVATION,
        DISCRETE,
        input_fc_layer_params=(4,),
        lstm_size=(3, 3),
        output_fc_layer_params=None,
    )
    agent = reinforce_agent.ReinforceAgent(STEP, DISCRETE, net, adam())
    agent.initialize()
    shuffle(net)
    expect("stacked", logits=net(SEQUENCES, STEP_TYPES)[0].logits)
    save("stacked", agent)


def layers():
    """Sequential with layers of Keras, as in the tutorial, with normalizations."""
    net = sequential.Sequential(
        [
            tf.keras.layers.Dense(4, activation="relu"),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.Dense(4),
            tf.keras.layers.LayerNormalization(),
            tf.keras.layers.Dense(3),
        ],
        input_spec=OBSERVATION,
    )
    agent = dqn_agent.DqnAgent(STEP, DISCRETE, q_network=net, optimizer=adam())
    agent.initialize()
    shuffle(net)
    expect("layers", values=net(INPUTS)[0])
    save("layers", agent)


def c51():
    """CategoricalQNetwork."""
    net = categorical_q_network.CategoricalQNetwork(
        OBSERVATION, DISCRETE, num_atoms=5, fc_layer_params=(4,)
    )
    shuffle(net)
    expect("c51", logits=net(INPUTS)[0])
    with tempfile.TemporaryDirectory() as folder:
        tf.train.Checkpoint(network=net).save(f"{folder}/ckpt")
        keep(folder, HERE / "c51" / "checkpoint")


def acme():
    """A policy of D4PG's kind, and a recurrent network, in a snapshot each."""
    policy = snt.Sequential(
        [
            acme_networks.LayerNormMLP((4, 4, 4), activate_final=True),
            acme_networks.MultivariateNormalDiagHead(2),
        ]
    )
    recurrent = snt.DeepRNN([snt.Linear(4), snt.LSTM(3), snt.nets.MLP([4, 3])])
    acme_utils.create_variables(policy, [OBSERVATION])
    acme_utils.create_variables(recurrent, [OBSERVATION])
    for variable in (*policy.variables, *recurrent.variables):
        variable.assign(RANDOM.normal(size=variable.shape) * 0.4)
    distribution = policy(tf.constant(INPUTS))
    state = recurrent.initial_state(5)
    values = []
    for step in range(3):
        value, state = recurrent(tf.constant(SEQUENCES[:, step]), state)
        values.append(value)
    expect(
        "acme",
        mean=distribution.mean(),
        stddev=distribution.stddev(),
        values=tf.stack(values, axis=1),
    )
    parts = {"policy": policy, "recurrent": recurrent}
    with tempfile.TemporaryDirectory() as folder:
        times = {"directory": folder, "time_delta_minutes": 0.0}
        savers.Snapshotter(parts, **times).save()
        savers.Checkpointer(parts, **times).save()
        (run,) = pathlib.Path(folder).iterdir()
        for name in parts:
            source = run / "snapshots" / name / "variables"
            keep(source, HERE / "acme" / name / "variables")
        keep(run / "checkpoints" / "default", HERE / "acme" / "checkpoint")


if __name__ == "__main__":
    for case in (dqn, images, ppo, ddpg, sac, lstm, stacked, layers, c51, acme):
        case()
    np.savez_compressed(HERE / "expected.npz", **EXPECTED)
