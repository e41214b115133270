from . import bandit_replay_buffer as bandit_replay_buffer
from .bandit_replay_buffer import BanditReplayBuffer as BanditReplayBuffer
