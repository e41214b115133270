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

from examples import cli, off_policy, training
from tfrl import agents, environments, networks, utils

CONFIG = cli.define_config("dqn")


def main() -> None:
    """Trains DQN."""
    config = cli.read_config(CONFIG)
    training.run(config, {"dqn": "DQN"}, make_agent, off_policy.make_loop)


def make_agent(
    config: cli.Config, environment: environments.TFPyEnvironment
) -> agents.DqnAgent:
    """Makes the agent, with a decaying learning rate and a decaying epsilon."""
    import keras  # Not at the top: --help does not wait for TensorFlow.

    cli.check_discrete_actions(config.env, environment.action_spec())
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


if __name__ == "__main__":
    cli.start(main)
