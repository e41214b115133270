"""Makes the agent of train_dqn.py, train_dqn_service.py and sweep_dqn.py."""

from __future__ import annotations

from typing import Any

from examples import cli, training
from tfrl import agents, environments, networks, utils


def make_agent(
    config: cli.Config, environment: environments.TFEnvironment
) -> agents.DqnAgent:
    """Makes the agent, with a decaying learning rate and a decaying epsilon.

    If the learning rate ends where it begins, the optimizer gets it as a number.
    """
    import keras  # Not at the top: --help does not wait for TensorFlow.

    cli.check_discrete_actions(config.env, environment.action_spec())
    network = networks.QNetwork(
        environment.observation_spec(),
        environment.action_spec(),
        fc_layer_params=tuple(config.fc_layer_params),
        seed=config.seed,
        **training.network_arguments(config, environment),
    )
    epsilon = keras.optimizers.schedules.PolynomialDecay(
        config.initial_epsilon,
        config.epsilon_decay_iterations * config.train_steps_per_iteration,
        config.final_epsilon,
    )
    learning_rate: Any = config.learning_rate
    # A sweep sets a number for each run; all would share one schedule.
    if config.final_learning_rate != learning_rate:
        learning_rate = keras.optimizers.schedules.PolynomialDecay(
            learning_rate,
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
