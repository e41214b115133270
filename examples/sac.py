"""Makes the agents of train_sac.py: SAC, TQC and discrete SAC."""

from __future__ import annotations

import functools
import math
from typing import Any

from examples import cli, training
from tfrl import agents, environments, networks, policies

ALGORITHMS = {"sac": "SAC", "tqc": "TQC", "discrete_sac": "Discrete SAC"}


def make_agent(
    config: cli.Config, environment: environments.TFEnvironment
) -> agents.SacAgent | agents.DiscreteSacAgent:
    """Makes the agent that the configuration names, for actions of its kind."""
    is_discrete = config.agent == "discrete_sac"
    check = cli.check_discrete_actions if is_discrete else cli.check_continuous_actions
    check(config.env, environment.action_spec(), ALGORITHMS[config.agent])
    make = make_discrete_agent if is_discrete else make_continuous_agent
    return make(config, environment)


def make_continuous_agent(
    config: cli.Config, environment: environments.TFEnvironment
) -> agents.SacAgent:
    """Makes SAC or TQC: a tanh-squashed normal policy, and an ensemble of critics."""
    import tensorflow as tf  # Not at the top: --help does not wait for it.

    observation_spec = environment.observation_spec()
    action_spec = environment.action_spec()
    common = training.network_arguments(config, environment)
    if config.gsde_sample_freq:
        projection = functools.partial(
            networks.StateDependentNoiseProjectionNetwork,
            initial_log_std=config.gsde_initial_log_std,
        )
    else:
        projection = functools.partial(
            agents.sac.TanhNormalProjectionNetwork,
            std_transform=agents.sac.std_clip_transform,
        )
    actor = networks.ActorDistributionNetwork(
        observation_spec,
        action_spec,
        fc_layer_params=tuple(config.actor_fc_layer_params),
        continuous_projection_net=projection,
        seed=config.seed,
        **common,
    )
    is_tqc = config.agent == "tqc"
    critics = networks.CriticEnsembleNetwork(
        (observation_spec, action_spec),
        num_critics=config.num_critics,
        num_quantiles=config.num_quantiles if is_tqc else None,
        fc_layer_params=tuple(config.critic_fc_layer_params),
        seed=config.seed + 1,
        **common,
    )
    num_dimensions = sum(
        spec.shape.num_elements() for spec in tf.nest.flatten(action_spec)
    )
    make = agents.SacAgent
    if is_tqc:
        make = functools.partial(
            agents.TqcAgent, num_dropped_quantiles=config.num_dropped_quantiles
        )
    return make(
        critic_network=critics,
        actor_network=actor,
        target_entropy=config.target_entropy_per_dimension * num_dimensions,
        num_min=config.num_min or None,
        exploration=functools.partial(add_noise, config),
        **make_arguments(config, environment),
    )


def add_noise(config: cli.Config, policy: policies.TFPolicy) -> policies.TFPolicy:
    """Returns the policy that collects: `policy`, with the noise of the settings."""
    if config.gsde_sample_freq:
        policy = policies.StateDependentNoisePolicy(
            policy, config.gsde_sample_freq, seed=config.seed
        )
    if config.ou_stddev:
        policy = policies.OUNoisePolicy(
            policy,
            ou_stddev=config.ou_stddev,
            ou_damping=config.ou_damping,
            seed=config.seed,
            scaled_to_spec=True,
            reset_at_episode_start=True,
        )
    return policy


def make_discrete_agent(
    config: cli.Config, environment: environments.TFEnvironment
) -> agents.DiscreteSacAgent:
    """Makes discrete SAC: a categorical policy, and two Q-networks."""
    specs = environment.observation_spec(), environment.action_spec()
    common = training.network_arguments(config, environment)
    num_actions = specs[1].maximum - specs[1].minimum + 1
    return agents.DiscreteSacAgent(
        critic_network=networks.QNetwork(
            *specs,
            fc_layer_params=tuple(config.critic_fc_layer_params),
            seed=config.seed + 1,
            **common,
        ),
        actor_network=networks.ActorDistributionNetwork(
            *specs,
            fc_layer_params=tuple(config.actor_fc_layer_params),
            seed=config.seed,
            **common,
        ),
        target_entropy=config.target_entropy_fraction * math.log(num_actions),
        **make_arguments(config, environment),
    )


def make_arguments(
    config: cli.Config, environment: environments.TFEnvironment
) -> dict[str, Any]:
    """Returns the arguments that all three agents have."""
    import keras  # Not at the top: --help does not wait for TensorFlow.

    def make_optimizer(learning_rate: float) -> keras.optimizers.Optimizer:
        if not config.anneal_learning_rates:
            return keras.optimizers.Adam(learning_rate)
        num_updates = config.num_iterations * config.train_steps_per_iteration
        return keras.optimizers.Adam(
            keras.optimizers.schedules.PolynomialDecay(learning_rate, num_updates, 0.0)
        )

    alpha_rate = config.alpha_learning_rate
    return {
        "time_step_spec": environment.time_step_spec(),
        "action_spec": environment.action_spec(),
        "actor_optimizer": make_optimizer(config.actor_learning_rate),
        "critic_optimizer": make_optimizer(config.critic_learning_rate),
        "alpha_optimizer": make_optimizer(alpha_rate) if alpha_rate else None,
        "initial_log_alpha": math.log(config.initial_alpha),
        "target_update_tau": config.target_update_tau,
        "target_update_period": config.target_update_period,
        "gamma": config.gamma,
        "observation_normalizer": cli.make_observation_normalizer(config, environment),
        "n_step_update": config.n_step_update,
        "greedy_eval": True,
        "seed": config.seed,
    }
