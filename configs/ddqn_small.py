"""Double DQN on CartPole-v1 with a small network, for many runs in one program.

tfrl sweep ddqn --config=configs/ddqn_small.py --learning_rate=3e-4,1e-3,3e-3
tfrl tune ddqn --config=configs/ddqn_small.py --trials=64
"""

from typing import Any


def get_config() -> dict[str, Any]:
    """Returns the environment and the settings, which flags may override."""
    return {
        "env": "CartPole-v1",
        "num_iterations": 30_000,
        "collect_steps_per_iteration": 1,
        "train_steps_per_iteration": 1,
        "replay_capacity": 30_000,
        "fc_layer_params": (100,),
        "learning_rate": 1e-3,
        "final_learning_rate": None,
        "gamma": 0.99,
        "n_step_update": 1,
        "epsilon_decay_iterations": 5_000,
        "eval_interval": 1_000,
        "log_interval": 1_000,
    }
