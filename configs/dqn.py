"""Double DQN with 3-step returns on CartPole-v1.

The settings were chosen on seeds from 100 up. A poor policy balances the pole for about
300 steps, in which the cart drifts to the edge. The horizon of gamma has to be long
compared with that, or training settles for such a policy.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ConfigDict()
    config.env = "CartPole-v1"
    config.seed = 0
    config.num_envs = 1
    # The values that a continuous action may take, evenly spaced; 0 for discrete ones.
    config.num_action_bins = 0
    config.device = ""  # Where to train, such as "GPU:0"; "" is TensorFlow's choice.
    # True compiles the whole loop by XLA where that is possible. Otherwise the loop
    # samples from the buffer's as_dataset pipeline.
    config.jit_compile = True

    # 1,000 random steps, then 12,250 iterations of 4 steps and 4 updates: 50,000 steps.
    config.num_iterations = 12_250
    config.initial_collect_steps = 1_000
    config.collect_steps_per_iteration = 4
    config.train_steps_per_iteration = 4
    # Or "prioritized", with the settings below. train_dqn_service.py sets "service":
    # uniform replay in a separate server process, in a loop that is not compiled.
    config.replay = "uniform"
    config.replay_capacity = 50_000
    config.priority_exponent = 0.6
    # Annealed linearly over the run.
    config.importance_exponent = 0.4
    config.final_importance_exponent = 1.0

    config.fc_layer_params = (100, 100)
    config.dtype = "float32"  # Or "mixed_bfloat16", for a GPU and large networks.
    config.batch_size = 64
    config.learning_rate = 2e-3
    config.final_learning_rate = 1e-5
    config.gamma = 0.995
    config.n_step_update = 3
    config.double_q = True
    config.target_update_tau = 0.02
    config.target_update_period = 1
    config.initial_epsilon = 1.0
    config.final_epsilon = 0.05
    config.epsilon_decay_iterations = 2_000

    config.eval_interval = 500
    config.num_eval_episodes = 10
    config.log_interval = 125
    config.checkpoint_interval = 2_500
    return config
