"""REINFORCE on CartPole-v0: one hidden layer, two episodes per update."""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ConfigDict()
    config.env = "CartPole-v0"
    config.seed = 0
    config.num_envs = 1
    config.device = ""  # Where to train, such as "GPU:0"; "" is TensorFlow's choice.
    # True compiles the whole loop by XLA where that is possible. The compiled loop is
    # three times faster here, but compilation takes as long as 250 iterations save.
    config.jit_compile = False

    config.num_iterations = 250
    config.collect_episodes_per_iteration = 2
    config.replay = "uniform"  # train_reinforce_service.py sets "service".
    config.replay_capacity = 2_000

    config.fc_layer_params = (100,)
    config.learning_rate = 1e-3
    config.gamma = 1.0
    config.normalize_returns = True
    config.use_baseline = False
    config.entropy_regularization = 0.0

    config.eval_interval = 25
    config.num_eval_episodes = 10
    config.log_interval = 5
    config.checkpoint_interval = 25
    return config
