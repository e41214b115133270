"""Trains DMPO or MPO on any Gymnasium or dm_control task with bounded actions.

    python -m examples.train_dmpo
    python -m examples.train_dmpo --config=configs/mpo.py
    python -m examples.train_dmpo --seed=3 --config.epsilon_mean=5e-3
    python -m examples.train_dmpo --replay=prioritized
    python -m examples.train_dmpo --num_actors=2

The settings are in configs/dmpo.py; vmin and vmax must fit the rewards of the
environment. With --num_actors, actors in processes of their own collect. To resume a
run that was interrupted or killed, run the same command again. Watch it with
`tensorboard --logdir=logs`, and play the best policy of a run in one process with
`python -m examples.play --logdir=logs/dmpo_Pendulum-v1_0`.
"""

from __future__ import annotations

import functools
from typing import Any

from examples import actors, cli, distributed, off_policy, runs, training
from tfrl import agents, environments, losses, networks

CONFIG = cli.define_config("dmpo")
ALGORITHMS = {"dmpo": "DMPO", "mpo": "MPO"}


def main() -> None:
    """Trains the agent that the configuration names, in one process or with actors."""
    config = cli.read_config(CONFIG)
    if actors.NUM_ACTORS.value:
        train_with_actors(config)
        return
    runs.run(config, ALGORITHMS, make_agent, off_policy.make_loop)


def train_with_actors(config: cli.Config) -> None:
    """Trains on the experience that actors write, as often as one process would."""
    algorithm = cli.agent_name(config, ALGORITHMS)
    steps = config.collect_steps_per_iteration * config.num_envs
    actors.train_with_actors(
        config,
        algorithm,
        functools.partial(
            distributed.of_replay,
            config,
            ALGORITHMS[algorithm],
            lambda environment: make_agent(config, environment),
            config.batch_size * config.train_steps_per_iteration / steps,
            push_period=10,
            pull_period=10,
        ),
    )


def make_agent(
    config: cli.Config, environment: environments.TFEnvironment
) -> agents.MpoAgent:
    """Makes the agent: a policy of normal distributions, a critic and their losses."""
    import keras  # Not at the top: --help does not wait for TensorFlow.

    action_spec = environment.action_spec()
    cli.check_continuous_actions(config.env, action_spec, ALGORITHMS[config.agent])
    make, make_critic = {
        "dmpo": (agents.DmpoAgent, make_distributional_critic),
        "mpo": (agents.MpoAgent, make_critic_of_values),
    }[config.agent]
    policy_network = networks.Sequential(
        [
            make_torso(config),
            networks.MultivariateNormalDiagHead(
                action_spec.shape.num_elements(),
                init_scale=config.init_scale,
                use_tfd_independent=True,
            ),
        ],
        seed=config.seed,
    )
    return make(
        environment.time_step_spec(),
        action_spec,
        policy_network,
        make_critic(config, environment),
        keras.optimizers.Adam(config.policy_learning_rate),
        keras.optimizers.Adam(config.critic_learning_rate),
        keras.optimizers.Adam(config.dual_learning_rate),
        policy_loss_module=losses.MPO(
            epsilon=config.epsilon,
            epsilon_mean=config.epsilon_mean,
            epsilon_stddev=config.epsilon_stddev,
            epsilon_penalty=config.epsilon_penalty,
            init_log_temperature=config.init_log_temperature,
            init_log_alpha_mean=config.init_log_alpha_mean,
            init_log_alpha_stddev=config.init_log_alpha_stddev,
        ),
        num_samples=config.num_samples,
        target_update_tau=config.target_update_tau,
        target_update_period=config.target_update_period,
        gamma=config.gamma,
        n_step_update=config.n_step_update,
        observation_normalizer=cli.make_observation_normalizer(config, environment),
        seed=config.seed,
    )


def make_distributional_critic(
    config: cli.Config, environment: environments.TFEnvironment
) -> Any:
    """Makes DMPO's critic, which predicts the distribution of the return."""
    del environment  # The first layer joins any observations and actions.
    return networks.Sequential(
        [
            networks.CriticMultiplexer(),
            make_torso(config),
            networks.DiscreteValuedHead(config.vmin, config.vmax, config.num_atoms),
        ],
        seed=config.seed + 1,
    )


def make_critic_of_values(
    config: cli.Config, environment: environments.TFEnvironment
) -> Any:
    """Makes MPO's critic, which predicts the mean of the return."""
    return networks.CriticNetwork(
        (environment.observation_spec(), environment.action_spec()),
        joint_fc_layer_params=tuple(config.fc_layer_params),
        seed=config.seed + 1,
        **training.network_arguments(config, environment),
    )


def make_torso(config: cli.Config) -> networks.LayerNormMLP:
    """Makes the hidden layers of the policy, or of DMPO's critic."""
    return networks.LayerNormMLP(
        tuple(config.fc_layer_params), activate_final=True, dtype=config.dtype
    )


if __name__ == "__main__":
    cli.start(main)
