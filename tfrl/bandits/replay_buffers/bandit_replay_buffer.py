"""TF-Agents' name of the uniform replay buffer, for bandits."""

from tfrl.replay_buffers import tf_uniform_replay_buffer

BanditReplayBuffer = tf_uniform_replay_buffer.TFUniformReplayBuffer
