"""Trains D4PG on any Gymnasium or dm_control task with bounded continuous actions.

    python -m examples.train_d4pg
    python -m examples.train_d4pg --seed=3 --config.critic_learning_rate=5e-4
    python -m examples.train_d4pg --config=configs/d4pg_cartpole.py
    python -m examples.train_d4pg --replay=prioritized

The settings are in configs/d4pg.py; vmin and vmax must fit the rewards of the
environment. To resume a run that was interrupted or killed, run the same command again.
Watch it with `tensorboard --logdir=logs`, and play the best policy with `python -m
examples.play --logdir=logs/d4pg_Pendulum-v1_0`.
"""

from __future__ import annotations

from examples import cli, off_policy, runs, training
from tfrl import agents, environments, networks

CONFIG = cli.define_config("d4pg")


def main() -> None:
    """Trains D4PG."""
    config = cli.read_config(CONFIG)
    runs.run(config, {"d4pg": "D4PG"}, make_agent, off_policy.make_loop)


def make_agent(
    config: cli.Config, environment: environments.TFEnvironment
) -> agents.D4pgAgent:
    """Makes the agent, an actor and a critic that predicts distributions."""
    import keras  # Not at the top: --help does not wait for TensorFlow.

    specs = environment.observation_spec(), environment.action_spec()
    cli.check_continuous_actions(config.env, specs[1], "D4PG")
    units = tuple(config.fc_layer_params)
    critic_network = networks.Sequential(
        [
            networks.CriticMultiplexer(),
            networks.LayerNormMLP(units, activate_final=True, dtype=config.dtype),
            networks.DiscreteValuedHead(config.vmin, config.vmax, config.num_atoms),
        ],
        seed=config.seed + 1,
    )
    return agents.D4pgAgent(
        environment.time_step_spec(),
        specs[1],
        networks.ActorNetwork(
            *specs,
            units,
            seed=config.seed,
            **training.network_arguments(config, environment),
        ),
        critic_network,
        keras.optimizers.Adam(config.actor_learning_rate),
        keras.optimizers.Adam(config.critic_learning_rate),
        sigma=config.sigma,
        target_update_tau=config.target_update_tau,
        target_update_period=config.target_update_period,
        gamma=config.gamma,
        n_step_update=config.n_step_update,
        noise_scaled_to_spec=True,
        seed=config.seed,
        observation_normalizer=cli.make_observation_normalizer(config, environment),
    )


if __name__ == "__main__":
    cli.start(main)
