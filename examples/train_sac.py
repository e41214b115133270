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

from examples import cli
from tfrl import agents, environments, networks, policies, replay_buffers, train
from tfrl import eval as evaluation

CONFIG = cli.define_config("sac")


def main() -> None:
    """Builds the agent, the buffer and the loop, and runs it."""
    config = cli.read_config(CONFIG)
    cli.prepare("sac", config)
    environment = make_environment(config, config.num_envs, config.seed)
    with train.device_scope(config.device):
        agent = make_agent(config, environment)
        agent.initialize()
        replay_buffer = make_replay_buffer(config, environment, agent)
    loop = train.OffPolicyLoop(
        environment,
        agent,
        replay_buffer,
        collect_steps_per_iteration=config.collect_steps_per_iteration,
        train_steps_per_iteration=config.train_steps_per_iteration,
        initial_collect_steps=config.initial_collect_steps,
        sample_batch_size=config.batch_size,
        seed=config.seed,
        jit_compile="auto" if config.jit_compile else False,
    )
    run_loop(config, loop, cli.make_directory("sac", config))


def make_environment(
    config: cli.Config, num_envs: int, seed: int
) -> environments.TFPyEnvironment:
    """Makes the environment, whose actions must be continuous."""
    environment = cli.make_environment(config.env, num_envs, seed)
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


def make_replay_buffer(
    config: cli.Config,
    environment: environments.TFPyEnvironment,
    agent: agents.SacAgent,
) -> replay_buffers.TFUniformReplayBuffer | replay_buffers.TFPrioritizedReplayBuffer:
    """Makes the buffer, which samples uniformly or by the TD errors."""
    arguments = {
        "data_spec": agent.collect_data_spec,
        "batch_size": environment.batch_size,
        "max_length": config.replay_capacity // environment.batch_size,
        "seed": config.seed,
    }
    if config.replay == "uniform":
        return replay_buffers.TFUniformReplayBuffer(**arguments)
    if config.replay != "prioritized":
        raise ValueError(
            f"replay: got {config.replay!r}, expected 'uniform' or 'prioritized'; set "
            "--replay, or edit the configuration file."
        )
    import keras

    importance_exponent = keras.optimizers.schedules.PolynomialDecay(
        config.importance_exponent,
        config.num_iterations * config.train_steps_per_iteration,
        config.final_importance_exponent,
    )
    return replay_buffers.TFPrioritizedReplayBuffer(
        **arguments,
        priority_exponent=config.priority_exponent,
        importance_exponent=importance_exponent,
        step=agent.train_step_counter,
    )


def run_loop(
    config: cli.Config,
    loop: train.OffPolicyLoop,
    directory: train.RunDirectory,
) -> None:
    """Trains to the end; evaluates, logs and saves during training."""
    # All episodes of an evaluation run side by side, from different starts.
    environment = make_environment(config, config.num_eval_episodes, 0)
    evaluator = evaluation.Evaluator(
        environment, loop.agent.policy, config.num_eval_episodes, seed=config.seed
    )

    def evaluate_policy(iteration: int) -> evaluation.EvaluationResult:
        environment.seed(10_000_000 + 1_000 * iteration)
        return evaluator.run()

    run = train.Run(
        loop,
        directory,
        num_iterations=config.num_iterations,
        evaluate=evaluate_policy,
        eval_interval=config.eval_interval,
        log_interval=config.log_interval,
        checkpoint_interval=config.checkpoint_interval,
        video_environment=cli.make_video_environment(config.env),
        title=f"SAC on {config.env}, seed {config.seed}",
    )
    cli.report(run.run(), directory)


if __name__ == "__main__":
    cli.start(main)
