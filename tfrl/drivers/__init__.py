"""Drivers step a policy through an environment and show each step to observers.

`PyDriver` drives Python environments; the others drive TensorFlow environments, eagerly
or as part of a graph.

>>> from tfrl.drivers import PyDriver
>>> from tfrl.environments import suite_gym
>>> from tfrl.metrics import py_metrics
>>> from tfrl.policies import RandomPyPolicy
>>> environment = suite_gym.load("CartPole-v1")
>>> policy = RandomPyPolicy(environment.time_step_spec(), environment.action_spec())
>>> episodes = py_metrics.NumberOfEpisodes()
>>> driver = PyDriver(environment, policy, observers=[episodes], max_episodes=3)
>>> time_step, policy_state = driver.run(environment.reset())
>>> int(episodes.result())
3
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
