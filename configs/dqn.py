"""Double DQN with 3-step returns on CartPole-v1.

`--config.agent=c51`, `qr_dqn`, `iqn`, `rainbow` or `r2d2` takes configs/c51.py and so
on.

The settings were chosen on seeds from 100 up. A poor policy balances the pole for about
300 steps, in which the cart drifts to the edge. The horizon of gamma has to be long
compared with that, or training settles for such a policy.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    """Returns the settings, which flags of the scripts may override."""
    config = ConfigDict()
    config.env = "CartPole-v1"  # Gymnasium environment.
    config.agent = "dqn"  # dqn, c51, qr_dqn, iqn, rainbow or r2d2.
    config.seed = 0  # Seed of everything random.
    config.num_envs = 1  # Environments stepped together.
    config.num_action_bins = 0  # Values of a continuous action, evenly spaced.
    config.device = ""  # Where to train, such as GPU:0.
    # A loop that is not compiled samples from the buffer's as_dataset pipeline.
    config.jit_compile = True  # Compile the loop by XLA, where possible.

    config.num_iterations = 12_250  # 4 steps and 4 updates each: 50,000 steps.
    config.initial_collect_steps = 1_000  # Random steps before the first iteration.
    config.collect_steps_per_iteration = 4  # Steps of each environment.
    config.train_steps_per_iteration = 4  # Updates of the weights.
    # train_dqn_service.py sets "service": uniform replay in a separate server process,
    # in a loop that is not compiled.
    config.replay = "uniform"  # Or prioritized, with its exponents.
    config.replay_capacity = 50_000  # Frames in the buffer.
    config.frame_stack = 0  # Frames of an observation, to store each once; 0: whole.
    config.priority_exponent = 0.6  # 0 samples uniformly.
    config.importance_exponent = 0.4  # First one; changes linearly over the run.
    config.final_importance_exponent = 1.0  # Last exponent.
    config.goals_per_step = 0  # Goals in hindsight for each step; 0: none.

    config.conv_layer_params = ()  # For images; none for other observations.
    config.fc_layer_params = (100, 100)  # Units of the hidden layers.
    config.normalize_observations = False  # By their running mean and variance.
    config.dtype = "float32"  # mixed_bfloat16 for large networks on GPUs.
    config.batch_size = 64  # Frames in an update.
    config.learning_rate = 2e-3  # First rate of Adam; falls linearly.
    config.final_learning_rate = 1e-5  # Last rate of Adam.
    config.adam_epsilon = 1e-7  # In the denominator of Adam's step.
    config.max_gradient_norm = 0.0  # Of all gradients together; 0: unlimited.
    config.loss = "squared"  # Or huber, of DQN's errors.
    config.gamma = 0.995  # Discount of a step.
    config.n_step_update = 3  # Steps in a return.
    # The parts of Rainbow beside n-step returns and prioritized replay. Each may be
    # turned on or off for every agent, but for munchausen: not with C51, double_q or
    # several steps in a return.
    config.double_q = True  # The online network chooses the next action.
    config.dueling = False  # Stacks of their own for values and advantages.
    config.noisy_stddev = 0.0  # First noise of the last layers; 0.5 is usual.
    config.munchausen = False  # Munchausen; not C51, double_q or n steps.
    config.num_atoms = 51  # Atoms of C51.
    config.min_q_value = 0.0  # Lowest atom of C51.
    config.max_q_value = 200.0  # Highest atom of C51.
    config.num_quantiles = 32  # Quantiles of QR-DQN and IQN.
    config.lstm_size = 0  # Units of R2D2's LSTM, after the hidden layers.
    config.burn_in_length = 0  # Steps that bring R2D2's state up to date.
    config.trace_length = 0  # Steps after these that R2D2 learns from.
    config.priority_eta = 1.0  # Share of a sequence's largest error; the rest: mean.
    config.target_update_tau = 0.02  # Step of the target network to the Q-network.
    config.target_update_period = 1  # Updates between such steps.
    config.initial_epsilon = 1.0  # First probability of a random action.
    config.final_epsilon = 0.05  # Last probability of a random action.
    config.epsilon_decay_iterations = 2_000  # Iterations from the first to the last.

    config.eval_interval = 500  # Iterations between evaluations.
    config.num_eval_episodes = 10  # Episodes in an evaluation.
    config.log_interval = 125  # Iterations between lines of the log.
    config.checkpoint_interval = 2_500  # Iterations between checkpoints.
    return config
