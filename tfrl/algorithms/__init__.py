"""Algorithms: each is an agent with its networks, replay, loop and settings.

Their classes are names of `tfrl` itself, such as `tfrl.PPO`:

>>> import tfrl
>>> ppo = tfrl.PPO("CartPole-v1", seed=3, learning_rate=3e-4)
>>> ppo.learning_rate
0.0003
"""
