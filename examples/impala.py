"""Makes the agent of train_impala.py."""

from __future__ import annotations

from examples import cli
from tfrl import agents, environments


def make_agent(
    config: cli.Config,
    environment: environments.TFEnvironment,
    collect_update_period: int | None = None,
) -> agents.ImpalaAgent:
    """Makes the agent, whose actor and critic share no layers."""
    import keras  # Not at the top: --help does not wait for TensorFlow.

    specs = environment.time_step_spec(), environment.action_spec()
    actor_net, value_net = agents.ppo.ppo_networks.create_networks(
        specs[0].observation,
        specs[1],
        fc_layer_params=tuple(config.fc_layer_params),
        activation_fn=keras.activations.get(config.activation),
        dtype=config.dtype,
        seed=config.seed,
    )
    rate = config.learning_rate
    if config.anneal_learning_rate:
        rate = keras.optimizers.schedules.PolynomialDecay(
            rate, config.num_iterations, 0.0
        )
    return agents.ImpalaAgent(
        *specs,
        keras.optimizers.Adam(rate, epsilon=1e-5),
        actor_net,
        value_net,
        discount_factor=config.gamma,
        lambda_value=config.lambda_value,
        entropy_regularization=config.entropy_regularization,
        value_pred_loss_coef=config.value_loss_weight,
        max_abs_reward=config.max_abs_reward or None,
        gradient_clipping=config.gradient_clipping,
        collect_update_period=collect_update_period or config.collect_update_period,
        observation_normalizer=cli.make_observation_normalizer(config, environment),
        seed=config.seed,
    )
