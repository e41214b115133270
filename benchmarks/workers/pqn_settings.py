"""The settings that all contenders of the benchmark pqn have in common.

They are CleanRL's, but with Adam instead of RAdam, which PyTorch computes more slowly,
and with the exploration of the second half of a run.
"""

ENVIRONMENT = "CartPole-v1"
UNITS = (120, 84)
EPOCHS = 4
MINIBATCHES = 4
LEARNING_RATE = 2.5e-4
GAMMA = 0.99
LAMBDA = 0.65
EPSILON = 0.05
GRADIENT_NORM = 10.0
