"""Trains PQN on any Gymnasium environment with one action.

    python -m examples.train_pqn
    python -m examples.train_pqn --env=Acrobot-v1 --seed=3
    python -m examples.train_pqn --env=Pendulum-v1 --config.num_action_bins=11

It is Q-learning from rollouts, without replay. The settings are in configs/pqn.py. To
resume a run that was interrupted or killed, run the same command again. Watch it with
`tensorboard --logdir=logs`, and play the best policy with
`python -m examples.play --logdir=logs/pqn_CartPole-v1_0`.
"""

from __future__ import annotations

from examples import cli, runs, training
from tfrl import agents, environments, networks, train

CONFIG = cli.define_config("pqn")


def main() -> None:
    """Trains PQN."""
    runs.run(cli.read_config(CONFIG), {"pqn": "PQN"}, make_agent, make_loop)


def make_agent(
    config: cli.Config, environment: environments.TFEnvironment
) -> agents.PqnAgent:
    """Makes the agent, whose network has layer normalization."""
    import keras  # Not at the top: --help does not wait for TensorFlow.

    action_spec = environment.action_spec()
    cli.check_discrete_actions(config.env, action_spec, "PQN")
    network = networks.QNetwork(
        environment.observation_spec(),
        action_spec,
        fc_layer_params=tuple(config.fc_layer_params),
        layer_norm=True,
        seed=config.seed,
        **training.network_arguments(config, environment),
    )
    epsilon = keras.optimizers.schedules.PolynomialDecay(
        config.initial_epsilon,
        config.epsilon_decay_iterations * training.updates_per_rollout(config),
        config.final_epsilon,
    )
    rate = training.follow_progress(
        config, config.learning_rate, is_annealed=config.anneal_learning_rate
    )
    return agents.PqnAgent(
        environment.time_step_spec(),
        action_spec,
        network,
        keras.optimizers.Adam(rate),
        epsilon_greedy=epsilon,
        gamma=config.gamma,
        lambda_value=config.lambda_value,
        gradient_clipping=config.gradient_clipping,
        seed=config.seed,
        observation_normalizer=cli.make_observation_normalizer(config, environment),
    )


def make_loop(
    config: cli.Config,
    environment: environments.TFEnvironment,
    agent: agents.PqnAgent,
) -> train.OnPolicyLoop:
    """Makes the loop."""
    return train.OnPolicyLoop(
        environment,
        agent,
        collect_steps_per_iteration=config.collect_steps_per_iteration,
        num_epochs=config.num_epochs,
        minibatch_size=config.minibatch_size or None,
        seed=config.seed,
        jit_compile="auto" if config.jit_compile else False,
    )


if __name__ == "__main__":
    cli.start(main)
