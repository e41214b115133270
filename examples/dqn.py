"""Makes the agents of train_dqn.py, train_dqn_service.py and sweep_dqn.py."""

from __future__ import annotations

from typing import Any

from examples import cli, training
from tfrl import agents, environments, networks, utils

ALGORITHMS = {
    "dqn": "DQN",
    "c51": "C51",
    "qr_dqn": "QR-DQN",
    "iqn": "IQN",
    "rainbow": "Rainbow",
    "r2d2": "R2D2",
}


def make_agent(
    config: cli.Config, environment: environments.TFEnvironment
) -> agents.DqnAgent:
    """Makes the agent, with a decaying learning rate and a decaying epsilon.

    If the learning rate ends where it begins, the optimizer gets it as a number.
    """
    import keras  # Not at the top: --help does not wait for TensorFlow.

    agent = cli.agent_name(config, ALGORITHMS)
    cli.check_discrete_actions(config.env, environment.action_spec(), ALGORITHMS[agent])
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
    arguments = {
        "epsilon_greedy": epsilon,
        "n_step_update": config.n_step_update,
        "target_update_tau": config.target_update_tau,
        "target_update_period": config.target_update_period,
        "gamma": config.gamma,
        "seed": config.seed,
        "observation_normalizer": cli.make_observation_normalizer(config, environment),
    }
    if agent in ("c51", "rainbow"):
        arguments["min_q_value"] = config.min_q_value
        arguments["max_q_value"] = config.max_q_value
    if config.munchausen:
        arguments["munchausen"] = agents.dqn.Munchausen()
    make: Any = {
        "dqn": agents.DdqnAgent if config.double_q else agents.DqnAgent,
        "qr_dqn": agents.QrDqnAgent,
        "iqn": agents.IqnAgent,
        "r2d2": agents.R2d2Agent,
    }.get(agent, agents.CategoricalDqnAgent)
    if agent in ("dqn", "r2d2"):
        losses = {
            "squared": utils.common.element_wise_squared_loss,
            "huber": utils.common.element_wise_huber_loss,
        }
        arguments["td_errors_loss_fn"] = losses[config.loss]
    else:
        arguments["double_q"] = config.double_q
    if agent == "r2d2":
        arguments["burn_in_length"] = config.burn_in_length
    if agent == "iqn":
        arguments["num_quantiles"] = config.num_quantiles
        arguments["num_target_quantiles"] = config.num_quantiles
    return make(
        environment.time_step_spec(),
        environment.action_spec(),
        _make_network(agent, config, environment),
        keras.optimizers.Adam(
            learning_rate,
            epsilon=config.adam_epsilon,
            global_clipnorm=config.max_gradient_norm or None,
        ),
        **arguments,
    )


def _make_network(
    agent: str, config: cli.Config, environment: environments.TFEnvironment
) -> networks.Network:
    """Makes the Q-network of an agent.

    A dueling network has the last hidden layer twice, for values and for advantages.
    R2D2's has an LSTM after the hidden layers.
    """
    units = tuple(config.fc_layer_params)
    if agent == "r2d2":
        return networks.QRnnNetwork(
            environment.observation_spec(),
            environment.action_spec(),
            input_fc_layer_params=units,
            lstm_size=(config.lstm_size,),
            output_fc_layer_params=None,
            dueling_layer_params=units[-1:] if config.dueling else None,
            noisy_stddev=config.noisy_stddev or None,
            seed=config.seed,
            **training.network_arguments(config, environment),
        )
    kind: Any = networks.QNetwork
    numbers = {}
    if agent in ("c51", "rainbow"):
        kind, numbers = networks.CategoricalQNetwork, {"num_atoms": config.num_atoms}
    elif agent in ("qr_dqn", "iqn"):
        kind = networks.QuantileQNetwork
        if agent == "iqn":
            kind = networks.ImplicitQuantileNetwork
        numbers = {"num_quantiles": config.num_quantiles}
    return kind(
        environment.observation_spec(),
        environment.action_spec(),
        fc_layer_params=units[:-1] if config.dueling else units,
        dueling_layer_params=units[-1:] if config.dueling else None,
        noisy_stddev=config.noisy_stddev or None,
        seed=config.seed,
        **numbers,
        **training.network_arguments(config, environment),
    )
