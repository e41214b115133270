"""Runs environments in other processes.

>>> from tfrl.environments import suite_gym
>>> from tfrl.environments.workers import process_py_environment
>>> environment = process_py_environment.ProcessPyEnvironment(
...     lambda: suite_gym.load("CartPole-v1")
... )
>>> environment.start()
>>> environment.reset().observation.shape
(4,)
>>> environment.close()
"""
