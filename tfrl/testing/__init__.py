"""Conformance suites and small environments, to test your own parts.

A suite checks that a part, such as an environment, keeps the contracts on which other
parts rely. Inherit the suite, implement the method that makes the part, and run pytest:

>>> from tfrl import testing
>>> from tfrl.environments import suite_gym
>>> class TestMyEnvironment(testing.PyEnvironmentConformance):
...     def make_environment(self):
...         return suite_gym.load("CartPole-v1")
>>> TestMyEnvironment().run_all()  # what pytest does, check by check

With unittest, inherit `unittest.TestCase` as well. There are suites for Python
environments, TensorFlow environments, networks, policies, replay buffers and agents.
The message of a failure gives the actual value, the expected value and a remedy. The
package's own parts pass the suites. Checks of graphs trace them without AutoGraph, as
loops and drivers do.

The environments in `environments` are so small that every step can be worked out by
hand:

>>> environment = testing.CountingEnvironment(length=2)
>>> [int(environment.step(0).observation) for _ in range(4)]
[0, 1, 2, 0]
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
