"""Trains (double) DQN on any Gymnasium environment with discrete actions.

    python -m examples.train_dqn
    python -m examples.train_dqn --env=Acrobot-v1 --seed=3 --config.learning_rate=5e-4
    python -m examples.train_dqn --replay=prioritized
    python -m examples.train_dqn --replay=service

The settings are in configs/dqn.py. Interrupt it, or kill it, and run the same command
again to go on. Watch it with `tensorboard --logdir=logs`, and play the best policy with
`python -m examples.play --logdir=logs/dqn_CartPole-v1_0`.
"""

import keras
import tensorflow as tf

from examples import cli
from tfrl import replay_service, train
from tfrl.agents.dqn import dqn_agent
from tfrl.environments import tf_py_environment
from tfrl.eval import evaluate
from tfrl.networks import q_network
from tfrl.replay_buffers import (
    reverb_replay_buffer,
    reverb_utils,
    tf_prioritized_replay_buffer,
    tf_uniform_replay_buffer,
)
from tfrl.specs import tensor_spec
from tfrl.utils import common

_CONFIG = cli.define_config("dqn")


def main() -> None:
    config = cli.read_config(_CONFIG)
    environment = cli.make_environment(config.env, config.num_envs, config.seed)
    agent = make_agent(config, environment)
    agent.initialize()
    directory = None
    if config.replay == "service":
        # The server's checkpoints are there, too.
        directory = cli.make_directory("dqn", config)
        buffer = make_service_buffer(config, environment, agent, directory)
    else:
        buffer = make_replay_buffer(config, environment, agent)
    loop = train.OffPolicyLoop(
        environment,
        agent,
        buffer,
        collect_steps_per_iteration=config.collect_steps_per_iteration,
        train_steps_per_iteration=config.train_steps_per_iteration,
        initial_collect_steps=config.initial_collect_steps,
        sample_batch_size=config.batch_size,
        seed=config.seed,
        jit_compile="auto" if config.jit_compile else False,
    )

    # All episodes of an evaluation run side by side, from starts of their own.
    eval_environment = cli.make_environment(config.env, config.num_eval_episodes, 0)
    evaluator = evaluate.Evaluator(
        eval_environment, agent.policy, config.num_eval_episodes, seed=config.seed
    )

    def evaluate_policy(iteration: int) -> evaluate.EvaluationResult:
        eval_environment.seed(10_000_000 + 1_000 * iteration)
        return evaluator.run()

    directory = directory or cli.make_directory("dqn", config)
    run = train.Run(
        loop,
        directory,
        num_iterations=config.num_iterations,
        evaluate=evaluate_policy,
        eval_interval=config.eval_interval,
        log_interval=config.log_interval,
        checkpoint_interval=config.checkpoint_interval,
        video_environment=cli.make_environment(config.env, 1, 1),
        title=f"DQN on {config.env}, seed {config.seed}",
    )
    cli.report(run.run(), directory)


def make_agent(
    config: cli.Config, environment: tf_py_environment.TFPyEnvironment
) -> dqn_agent.DqnAgent:
    """The agent, with a decaying learning rate and a decaying epsilon."""
    network = q_network.QNetwork(
        environment.observation_spec(),
        environment.action_spec(),
        fc_layer_params=tuple(config.fc_layer_params),
        dtype=config.dtype,
        seed=config.seed,
    )
    train_step = tf.Variable(0, dtype=tf.int64, name="train_step")
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
    make = dqn_agent.DdqnAgent if config.double_q else dqn_agent.DqnAgent
    return make(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=network,
        optimizer=keras.optimizers.Adam(learning_rate),
        epsilon_greedy=lambda: epsilon(train_step),
        n_step_update=config.n_step_update,
        target_update_tau=config.target_update_tau,
        target_update_period=config.target_update_period,
        td_errors_loss_fn=common.element_wise_squared_loss,
        gamma=config.gamma,
        train_step_counter=train_step,
        seed=config.seed,
    )


def make_replay_buffer(
    config: cli.Config,
    environment: tf_py_environment.TFPyEnvironment,
    agent: dqn_agent.DqnAgent,
) -> (
    tf_uniform_replay_buffer.TFUniformReplayBuffer
    | tf_prioritized_replay_buffer.TFPrioritizedReplayBuffer
):
    """The buffer, which samples uniformly or by the TD errors."""
    arguments = {
        "data_spec": agent.collect_data_spec,
        "batch_size": environment.batch_size,
        "max_length": config.replay_capacity // environment.batch_size,
        "seed": config.seed,
    }
    if config.replay == "uniform":
        return tf_uniform_replay_buffer.TFUniformReplayBuffer(**arguments)
    if config.replay != "prioritized":
        raise ValueError(
            "replay: expected 'uniform' or 'prioritized' or 'service', got "
            f"{config.replay!r}."
        )
    importance_exponent = keras.optimizers.schedules.PolynomialDecay(
        config.importance_exponent,
        config.num_iterations * config.train_steps_per_iteration,
        config.final_importance_exponent,
    )
    return tf_prioritized_replay_buffer.TFPrioritizedReplayBuffer(
        **arguments,
        priority_exponent=config.priority_exponent,
        importance_exponent=lambda: importance_exponent(agent.train_step_counter),
    )


def make_service_buffer(
    config: cli.Config,
    environment: tf_py_environment.TFPyEnvironment,
    agent: dqn_agent.DqnAgent,
    directory: train.RunDirectory,
) -> reverb_replay_buffer.ReverbReplayBuffer:
    """Uniform replay in a server process; observers write what the agent samples."""
    num_steps = config.n_step_update + 1
    table = replay_service.Table(
        "experience",
        sampler=replay_service.selectors.Uniform(),
        remover=replay_service.selectors.Fifo(),
        max_size=config.replay_capacity,
        rate_limiter=replay_service.rate_limiters.MinSize(config.batch_size),
        signature=tensor_spec.add_outer_dim(agent.collect_data_spec, num_steps),
    )
    checkpoints = directory.checkpoints / "replay"
    server = replay_service.Server(
        [table],
        checkpointer=replay_service.checkpointers.DefaultCheckpointer(checkpoints),
        seed=config.seed,
    )

    def make_observer(
        client: replay_service.Client,
    ) -> reverb_utils.ReverbTrajectorySequenceObserver:
        return reverb_utils.ReverbTrajectorySequenceObserver(
            client, table.name, sequence_length=num_steps
        )

    return reverb_replay_buffer.ReverbReplayBuffer(
        agent.collect_data_spec,
        table.name,
        sequence_length=num_steps,
        local_server=server,
        make_observer=make_observer,
        batch_size=environment.batch_size,
    )


if __name__ == "__main__":
    cli.start(main)
