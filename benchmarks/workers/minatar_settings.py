"""The settings of PPO, DQN and PQN on MinAtar, for tfrl and for programs in JAX.

The layers are those of Young and Tian, "MinAtar" (2019). The rest is that of the
benchmarks ppo, pqn and compiled.
"""

from typing import Any

from benchmarks.workers import ppo_settings, pqn_settings

ENVIRONMENT = "gymnax/Breakout-MinAtar"
FILTERS = 16  # Of 3 x 3.
UNITS = (128,)

_NETWORK = {
    "conv_layer_params": ((FILTERS, 3, 1),),
    "fc_layer_params": UNITS,
    "activation": "relu",
}
# tfrl's, by the algorithms' names.
ALGORITHMS: dict[str, dict[str, Any]] = {
    "ppo": {
        **_NETWORK,
        "learning_rate": ppo_settings.LEARNING_RATE,
        "final_learning_rate": None,
        "num_epochs": ppo_settings.EPOCHS,
        "clip_range": ppo_settings.CLIP_RANGE,
        "final_clip_range": None,
        "value_clip_range": ppo_settings.CLIP_RANGE,
        "gamma": ppo_settings.GAMMA,
        "lambda_value": ppo_settings.GAE_LAMBDA,
        "entropy_regularization": ppo_settings.ENTROPY_WEIGHT,
        "value_loss_weight": ppo_settings.VALUE_WEIGHT,
        "max_gradient_norm": ppo_settings.GRADIENT_NORM,
    },
    "pqn": {
        **_NETWORK,
        "learning_rate": pqn_settings.LEARNING_RATE,
        "final_learning_rate": None,
        "num_epochs": pqn_settings.EPOCHS,
        "gamma": pqn_settings.GAMMA,
        "lambda_value": pqn_settings.LAMBDA,
        "initial_epsilon": pqn_settings.EPSILON,
        "final_epsilon": pqn_settings.EPSILON,
        "max_gradient_norm": pqn_settings.GRADIENT_NORM,
    },
    # As `with_jax` has it.
    "dqn": {
        **_NETWORK,
        "batch_size": 64,
        "replay_capacity": 100_000,
        "initial_collect_steps": 1_000,
        "train_steps_per_iteration": 1,
        "learning_rate": 1e-3,
        "final_learning_rate": None,
        "gamma": 0.99,
        "target_update_tau": 0.05,
        "target_update_period": 5,
        "initial_epsilon": 0.1,
        "final_epsilon": 0.1,
        "loss": "squared",
    },
}
