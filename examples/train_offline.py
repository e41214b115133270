"""Trains IQL, CQL or behavioural cloning on recorded episodes of an environment.

    python -m examples.record --logdir=logs/sac_Pendulum-v1_0
    python -m examples.train_offline
    python -m examples.train_offline --config.agent=cql
    python -m examples.train_offline --env=Hopper-v5 --config.data=FOLDER

FOLDER is a dataset of Minari's, such as ~/.minari/datasets/mujoco/hopper/expert-v0. The
settings are in configs/offline.py. The environment serves to evaluate the policy
only. To resume a run that was interrupted or killed, run the same command again. Watch
it with `tensorboard --logdir=logs`, and play the best policy with
`python -m examples.play --logdir=logs/iql_Pendulum-v1_0`.
"""

from __future__ import annotations

import functools
import glob
import os
from typing import Any

import numpy as np

from examples import cli, runs, training
from tfrl import agents, datasets, environments, networks, replay_buffers, train

CONFIG = cli.define_config("offline")
ALGORITHMS = {"iql": "IQL", "cql": "CQL", "bc": "Behavioural cloning"}


def main() -> None:
    """Trains the agent that the configuration names."""
    runs.run(cli.read_config(CONFIG), ALGORITHMS, make_agent, make_loop)


def make_loop(
    config: cli.Config,
    environment: environments.TFPyEnvironment,
    agent: agents.TFAgent,
) -> train.OfflineLoop:
    """Makes the loop, with a buffer of the data."""
    del environment  # It only evaluates.
    with train.device_scope(config.device):
        replay_buffer = make_replay_buffer(config, agent)
    return train.OfflineLoop(
        agent,
        replay_buffer,
        train_steps_per_iteration=config.train_steps_per_iteration,
        sample_batch_size=config.batch_size,
        seed=config.seed,
        jit_compile="auto" if config.jit_compile else False,
    )


def make_replay_buffer(
    config: cli.Config, agent: agents.TFAgent
) -> replay_buffers.TFUniformReplayBuffer:
    """Makes a buffer of all recorded frames, and prints their mean return.

    It also shows the frames to the agent's normalizer.
    """
    import tensorflow as tf  # Not at the top: --help does not wait for it.

    # Parsed once, for the buffer and for the returns.
    blocks = load(config.data, agent.collect_data_spec).batch(1024).as_numpy_iterator()
    arrays = tf.nest.map_structure(lambda *parts: np.concatenate(parts), *blocks)
    frames = tf.data.Dataset.from_tensor_slices(arrays)
    num_frames = len(arrays.step_type)
    replay_buffer = replay_buffers.TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=1, max_length=num_frames, seed=config.seed
    )
    datasets.fill(replay_buffer, frames)
    one_sequence = tf.nest.map_structure(lambda x: tf.constant(x[np.newaxis]), arrays)
    agent.update_normalizers(one_sequence)
    returns = datasets.episode_returns(frames)
    mean = f", mean return {returns.mean():.1f}" if len(returns) else ""
    print(f"Data: {num_frames:,} frames, {len(returns)} whole episodes{mean}")
    return replay_buffer


def load(path: str, spec: Any) -> Any:
    """Returns the frames of recordings, or of a folder of Minari's."""
    path = os.path.expanduser(path)
    if os.path.isdir(path) or path.endswith(".hdf5"):
        return datasets.load_minari(path, spec)
    files = sorted(glob.glob(path))
    if not files:
        raise ValueError(
            f"data: got {path!r}, where there is no file or folder, expected "
            "recordings, which python -m examples.record makes, or the folder of a "
            "dataset of Minari's: `minari download NAME` fetches one to "
            "~/.minari/datasets/NAME. Set --config.data to either."
        )
    return datasets.load_recordings(files)


def make_agent(
    config: cli.Config, environment: environments.TFPyEnvironment
) -> agents.TFAgent:
    """Makes the agent, with its networks."""
    import keras  # Not at the top: --help does not wait for TensorFlow.
    import tensorflow as tf

    time_step_spec, action_spec = (
        environment.time_step_spec(),
        environment.action_spec(),
    )
    specs = (time_step_spec.observation, action_spec)
    if config.agent != "bc":
        cli.check_continuous_actions(config.env, action_spec, ALGORITHMS[config.agent])
    normalizer = cli.make_observation_normalizer(config, environment)
    sizes = tuple(config.fc_layer_params)
    common = training.network_arguments(config, environment)

    def adam() -> keras.optimizers.Optimizer:
        return keras.optimizers.Adam(config.learning_rate)

    squashed = functools.partial(
        agents.sac.TanhNormalProjectionNetwork,
        std_transform=agents.sac.std_clip_transform,
    )
    # Imitation of actions at the bounds: only the mean is squashed, not the density.
    plain = functools.partial(
        networks.NormalProjectionNetwork,
        std_transform=lambda x: tf.exp(tf.clip_by_value(x, -5.0, 2.0)),
    )
    actor = networks.ActorDistributionNetwork(
        *specs,
        fc_layer_params=sizes,
        continuous_projection_net=squashed if config.agent == "cql" else plain,
        seed=config.seed,
        **common,
    )
    if config.agent == "bc":
        return agents.BehavioralCloningAgent(
            time_step_spec,
            action_spec,
            actor,
            adam(),
            observation_normalizer=normalizer,
            seed=config.seed,
        )
    critics = networks.CriticNetwork(
        specs, joint_fc_layer_params=sizes, seed=config.seed + 1, **common
    )
    values = {
        "target_update_tau": config.target_update_tau,
        "gamma": config.gamma,
        "reward_scale_factor": config.reward_scale,
        "observation_normalizer": normalizer,
    }
    if config.agent == "iql":
        return agents.IqlAgent(
            time_step_spec,
            action_spec,
            critics,
            networks.ValueNetwork(
                specs[0], fc_layer_params=sizes, seed=config.seed + 2, **common
            ),
            actor,
            *(adam() for _ in range(3)),
            expectile=config.expectile,
            inverse_temperature=config.inverse_temperature,
            seed=config.seed,
            **values,
        )
    return agents.CqlSacAgent(
        time_step_spec,
        action_spec,
        critics,
        actor,
        *(adam() for _ in range(3)),
        cql_alpha=config.cql_alpha,
        num_cql_samples=config.num_cql_samples,
        include_critic_entropy_term=False,
        use_lagrange_cql_alpha=False,
        random_seed=config.seed,
        greedy_eval=True,
        **values,
    )


if __name__ == "__main__":
    cli.start(main)
