"""R2D2 on CartPole-v1 without velocities, with actors and replay servers.

An iteration is an update. An item of replay is a sequence, and successive sequences
overlap by half of the steps to learn from.
"""

from ml_collections import ConfigDict

from configs import distributed_dqn, r2d2


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = distributed_dqn.get_config()
    single = r2d2.get_config()
    for name in (
        "env",
        "agent",
        "replay",
        "priority_exponent",
        "importance_exponent",
        "priority_eta",
        "fc_layer_params",
        "lstm_size",
        "burn_in_length",
        "trace_length",
        "batch_size",
        "learning_rate",
        "n_step_update",
    ):
        config[name] = single[name]
    config.stride_length = 10  # Steps from one sequence to the next.
    config.num_iterations = 50_000  # Updates, one for four steps: 200,000 steps.
    config.initial_collect_steps = 100  # Sequences before the first update.
    config.samples_per_insert = 80.0  # How often each sequence is sampled.
    config.replay_capacity = 10_000  # Sequences in all servers together.
    return config
