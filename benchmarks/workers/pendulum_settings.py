"""The settings that all contenders of the benchmarks sac and td3 have in common.

An iteration is one step of the environment and one update. Each network has two hidden
layers; the critics' input is the observation beside the action. TD3 updates its actor
and its targets at every second update.
"""

ENVIRONMENT = "Pendulum-v1"
REPLAY_CAPACITY = 100_000
LEARNING_STARTS = 1_000
LEARNING_RATE = 1e-3
GAMMA = 0.99
TARGET_UPDATE_TAU = 0.005
TD3_DELAY = 2
TD3_EXPLORATION_NOISE = 0.1
