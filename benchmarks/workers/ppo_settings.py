"""The settings that all contenders of the benchmark ppo have in common.

They are CleanRL's: an actor and a critic of two hidden layers with tanh, four epochs of
four minibatches, clipped ratios, values and gradients, and an entropy bonus.
"""

ENVIRONMENT = "CartPole-v1"
UNITS = 64
EPOCHS = 4
MINIBATCHES = 4
LEARNING_RATE = 2.5e-4
ADAM_EPSILON = 1e-5
GAMMA = 0.99
GAE_LAMBDA = 0.95
CLIP_RANGE = 0.2
ENTROPY_WEIGHT = 0.01
VALUE_WEIGHT = 0.5
GRADIENT_NORM = 0.5
