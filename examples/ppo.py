"""Makes the agents of train_ppo.py: PPO and A2C."""

from __future__ import annotations

from typing import Any

from examples import cli, training
from tfrl import agents, environments, utils

ALGORITHMS = {"ppo": "PPO", "a2c": "A2C"}


def make_agent(
    config: cli.Config,
    environment: environments.TFEnvironment,
    *,
    trains_on_rollouts: bool = False,
) -> agents.PPOClipAgent | agents.A2CAgent:
    """Makes the agent, whose actor and critic share no layers.

    Args:
      config: The configuration.
      environment: The environment.
      trains_on_rollouts: Whether the agent's `train` takes rollouts and does the epochs
        itself; if not, the loop does, with minibatches.
    """
    import keras  # Not at the top: --help does not wait for TensorFlow.

    specs = environment.time_step_spec(), environment.action_spec()
    lstm_size = config.get("lstm_size")
    actor_net, value_net = agents.ppo.ppo_networks.create_networks(
        specs[0].observation,
        specs[1],
        fc_layer_params=tuple(config.fc_layer_params),
        conv_layer_params=tuple(config.conv_layer_params) or None,
        lstm_size=(lstm_size,) if lstm_size else None,
        output_fc_layer_params=config.get("output_fc_layer_params"),
        activation_fn=keras.activations.get(config.activation),
        initial_log_stddev=config.get("initial_log_stddev", 0.0),
        dtype=config.dtype,
        seed=config.seed,
    )
    reward_normalizer = None
    if config.get("normalize_rewards"):
        reward_normalizer = utils.normalizers.reward_normalizer.RewardNormalizer(
            environment.batch_size, config.gamma
        )
    rate = training.follow_progress(
        config, config.learning_rate, is_annealed=config.anneal_learning_rate
    )
    arguments: dict[str, Any] = {
        "optimizer": keras.optimizers.Adam(rate, epsilon=1e-5),
        "actor_net": actor_net,
        "value_net": value_net,
        "lambda_value": config.gae_lambda,
        "discount_factor": config.gamma,
        "entropy_regularization": config.entropy_regularization,
        "value_pred_loss_coef": config.value_loss_weight,
        "gradient_clipping": config.gradient_clipping,
        "normalize_advantages": config.normalize_advantages,
        "compute_value_and_advantage_in_train": trains_on_rollouts,
        "update_normalizers_in_train": False,
        "observation_normalizer": cli.make_observation_normalizer(config, environment),
        "reward_normalizer": reward_normalizer,
        "seed": config.seed,
    }
    if config.agent == "a2c":
        return agents.A2CAgent(*specs, **arguments)
    return agents.PPOClipAgent(
        *specs,
        importance_ratio_clipping=training.follow_progress(
            config, config.clip_range, is_annealed=config.anneal_clip_range
        ),
        value_clipping=config.value_clip_range or None,
        num_epochs=config.num_epochs if trains_on_rollouts else 1,
        use_gae=True,
        use_td_lambda_return=True,
        normalize_observations=False,
        normalize_rewards=False,
        **arguments,
    )
