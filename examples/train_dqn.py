"""Trains (double) DQN on any Gymnasium environment with one action.

    python -m examples.train_dqn
    python -m examples.train_dqn --env=Acrobot-v1 --seed=3 --config.learning_rate=5e-4
    python -m examples.train_dqn --env=Pendulum-v1 --config.num_action_bins=11
    python -m examples.train_dqn --replay=prioritized

The settings are in configs/dqn.py. To resume a run that was interrupted or killed, run
the same command again. Watch it with `tensorboard --logdir=logs`, and play the best
policy with `python -m examples.play --logdir=logs/dqn_CartPole-v1_0`.
train_dqn_service.py does the same training with replay in a server.
"""

from __future__ import annotations

from examples import cli, runs
from tfrl import agents, environments, networks, replay_buffers, train, utils

CONFIG = cli.define_config("dqn")


def main() -> None:
    """Builds the agent, the buffer and the loop, and runs it."""
    config = cli.read_config(CONFIG)
    cli.prepare("dqn", config)
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
    runs.run_loop(config, loop, cli.make_directory("dqn", config), "DQN")


def make_environment(
    config: cli.Config, num_envs: int, seed: int
) -> environments.TFPyEnvironment:
    """Makes the environment, with continuous actions in `num_action_bins` bins."""
    cli.refuse_games(config.env)
    bins = config.num_action_bins
    environment = cli.make_environment(config.env, num_envs, seed, bins)
    cli.check_discrete_actions(config.env, environment.action_spec())
    return environment


def make_agent(
    config: cli.Config, environment: environments.TFPyEnvironment
) -> agents.DqnAgent:
    """Makes the agent, with a decaying learning rate and a decaying epsilon."""
    import keras  # Not at the top: --help does not wait for TensorFlow.

    observation_spec = environment.observation_spec()
    layers, combiner = networks.default_preprocessing(observation_spec)
    network = networks.QNetwork(
        observation_spec,
        environment.action_spec(),
        preprocessing_layers=layers,
        preprocessing_combiner=combiner,
        fc_layer_params=tuple(config.fc_layer_params),
        dtype=config.dtype,
        seed=config.seed,
    )
    epsilon = keras.optimizers.schedules.PolynomialDecay(
        config.initial_epsilon,
        config.epsilon_decay_iterations * config.train_steps_per_iteration,
        config.final_epsilon,
    )
    learning_rate = keras.optimizers.schedules.PolynomialDecay(
        config.learning_rate,
        config.num_iterations * config.train_steps_per_iteration,
        config.final_learning_rate,
    )
    make = agents.DdqnAgent if config.double_q else agents.DqnAgent
    return make(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=network,
        optimizer=keras.optimizers.Adam(learning_rate),
        epsilon_greedy=epsilon,
        n_step_update=config.n_step_update,
        target_update_tau=config.target_update_tau,
        target_update_period=config.target_update_period,
        td_errors_loss_fn=utils.common.element_wise_squared_loss,
        gamma=config.gamma,
        seed=config.seed,
        observation_normalizer=cli.make_observation_normalizer(config, environment),
    )


def make_replay_buffer(
    config: cli.Config,
    environment: environments.TFPyEnvironment,
    agent: agents.DqnAgent,
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
            f"replay: got {config.replay!r}, expected 'uniform' or 'prioritized'; for "
            "'service' run python -m examples.train_dqn_service, with the same other "
            "flags."
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


if __name__ == "__main__":
    cli.start(main)
