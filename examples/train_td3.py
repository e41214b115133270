"""Trains TD3 or DDPG on any Gymnasium environment with bounded continuous actions.

    python -m examples.train_td3
    python -m examples.train_td3 --config.agent=ddpg --seed=3
    python -m examples.train_td3 --config=configs/td3_mountain_car.py
    python -m examples.train_td3 --config=configs/td3_mujoco.py --env=HalfCheetah-v5
    python -m examples.train_td3 --replay=prioritized

The settings are in configs/td3.py. To resume a run that was interrupted or killed, run
the same command again. Watch it with `tensorboard --logdir=logs`, and play the best
policy with `python -m examples.play --logdir=logs/td3_Pendulum-v1_0`.
"""

from __future__ import annotations

from examples import cli, off_policy, runs, training
from tfrl import agents, environments, networks, utils

CONFIG = cli.define_config("td3")
ALGORITHMS = {"td3": "TD3", "ddpg": "DDPG"}


def main() -> None:
    """Trains the agent that the configuration names."""
    runs.run(cli.read_config(CONFIG), ALGORITHMS, make_agent, off_policy.make_loop)


def make_agent(
    config: cli.Config, environment: environments.TFEnvironment
) -> agents.Td3Agent | agents.DdpgAgent:
    """Makes the agent, an actor and one or two critics."""
    import keras  # Not at the top: --help does not wait for TensorFlow.

    specs = environment.observation_spec(), environment.action_spec()
    cli.check_continuous_actions(config.env, specs[1], ALGORITHMS[config.agent])
    common = training.network_arguments(config, environment)
    units = tuple(config.fc_layer_params)
    arguments = {
        "time_step_spec": environment.time_step_spec(),
        "action_spec": specs[1],
        "actor_network": networks.ActorNetwork(
            *specs, units, seed=config.seed, **common
        ),
        "critic_network": networks.CriticNetwork(
            specs, joint_fc_layer_params=units, seed=config.seed + 1, **common
        ),
        "actor_optimizer": keras.optimizers.Adam(config.actor_learning_rate),
        "critic_optimizer": keras.optimizers.Adam(config.critic_learning_rate),
        "target_update_tau": config.target_update_tau,
        "td_errors_loss_fn": utils.common.element_wise_squared_loss,
        "gamma": config.gamma,
        "n_step_update": config.n_step_update,
        "noise_scaled_to_spec": True,
        "observation_normalizer": cli.make_observation_normalizer(config, environment),
        "seed": config.seed,
    }
    if config.agent == "ddpg":
        return agents.DdpgAgent(
            **arguments,
            ou_stddev=config.ou_stddev,
            ou_damping=config.ou_damping,
            reset_noise_at_episode_start=True,
        )
    return agents.Td3Agent(
        **arguments,
        exploration_noise_std=config.exploration_noise,
        target_update_period=config.target_update_period,
        actor_update_period=config.actor_update_period,
        target_policy_noise=config.target_policy_noise,
        target_policy_noise_clip=config.target_policy_noise_clip,
    )


if __name__ == "__main__":
    cli.start(main)
