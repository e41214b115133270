"""Trains SAC on any Gymnasium environment with bounded continuous actions.

    python -m examples.train_sac
    python -m examples.train_sac --seed=3 --config.critic_learning_rate=5e-4
    python -m examples.train_sac --config=configs/sac_mountain_car.py
    python -m examples.train_sac --replay=prioritized

The settings are in configs/sac.py. To resume a run that was interrupted or killed, run
the same command again. Watch it with `tensorboard --logdir=logs`, and play the best
policy with `python -m examples.play --logdir=logs/sac_Pendulum-v1_0`.
"""

from __future__ import annotations

import functools
import math

from examples import cli, off_policy
from tfrl import agents, environments, networks, policies, train

CONFIG = cli.define_config("sac")


def main() -> None:
    """Builds the agent, the buffer and the loop, and runs it."""
    config = cli.read_config(CONFIG)
    cli.prepare("sac", config)
    environment = make_environment(config)
    with train.device_scope(config.device):
        agent = make_agent(config, environment)
        agent.initialize()
        replay_buffer = off_policy.make_replay_buffer(config, environment, agent)
    loop = off_policy.make_loop(config, environment, agent, replay_buffer)
    off_policy.run_loop(config, loop, cli.make_directory("sac", config), "SAC")


def make_environment(config: cli.Config) -> environments.TFPyEnvironment:
    """Makes the environment, whose actions must be continuous."""
    environment = cli.make_environment(config.env, config.num_envs, config.seed)
    cli.check_continuous_actions(config.env, environment.action_spec(), "SAC")
    return environment


def make_agent(
    config: cli.Config, environment: environments.TFPyEnvironment
) -> agents.SacAgent:
    """Makes the agent: a tanh-squashed normal policy, and an ensemble of critics."""
    import keras  # Not at the top: --help does not wait for TensorFlow.
    import tensorflow as tf

    observation_spec = environment.observation_spec()
    action_spec = environment.action_spec()
    layers, combiner = networks.default_preprocessing(observation_spec)
    preprocessing = {
        "preprocessing_layers": layers,
        "preprocessing_combiner": combiner,
        "dtype": config.dtype,
    }
    actor = networks.ActorDistributionNetwork(
        observation_spec,
        action_spec,
        fc_layer_params=tuple(config.actor_fc_layer_params),
        continuous_projection_net=functools.partial(
            agents.sac.TanhNormalProjectionNetwork,
            std_transform=agents.sac.std_clip_transform,
        ),
        seed=config.seed,
        **preprocessing,
    )
    critics = networks.CriticEnsembleNetwork(
        (observation_spec, action_spec),
        num_critics=config.num_critics,
        fc_layer_params=tuple(config.critic_fc_layer_params),
        seed=config.seed + 1,
        **preprocessing,
    )
    num_dimensions = sum(
        spec.shape.num_elements() for spec in tf.nest.flatten(action_spec)
    )
    alpha_rate = config.alpha_learning_rate

    def add_noise(policy: policies.TFPolicy) -> policies.TFPolicy:
        return policies.OUNoisePolicy(
            policy,
            ou_stddev=config.ou_stddev,
            ou_damping=config.ou_damping,
            seed=config.seed,
            scaled_to_spec=True,
            reset_at_episode_start=True,
        )

    return agents.SacAgent(
        environment.time_step_spec(),
        action_spec,
        critic_network=critics,
        actor_network=actor,
        actor_optimizer=keras.optimizers.Adam(config.actor_learning_rate),
        critic_optimizer=keras.optimizers.Adam(config.critic_learning_rate),
        alpha_optimizer=keras.optimizers.Adam(alpha_rate) if alpha_rate else None,
        initial_log_alpha=math.log(config.initial_alpha),
        target_entropy=config.target_entropy_per_dimension * num_dimensions,
        target_update_tau=config.target_update_tau,
        target_update_period=config.target_update_period,
        gamma=config.gamma,
        n_step_update=config.n_step_update,
        num_min=config.num_min or None,
        exploration=add_noise if config.ou_stddev else None,
        greedy_eval=True,
        seed=config.seed,
    )


if __name__ == "__main__":
    cli.start(main)
