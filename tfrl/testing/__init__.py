"""Conformance suites and small environments, for tests of your own parts.

A suite checks that a part keeps the contracts that the others rely on. Inherit it, say
how to make the part, and run the tests with pytest:

>>> from tfrl import testing
>>> from tfrl.environments import suite_gym
>>> class TestMyEnvironment(testing.PyEnvironmentConformance):
...     def make_environment(self):
...         return suite_gym.load("CartPole-v1")
>>> TestMyEnvironment().run_all()  # what pytest does, check by check

With unittest, inherit `unittest.TestCase` as well. There is a suite each for Python and
TensorFlow environments, networks, policies, replay buffers and agents. A failure says
what came, what was expected and what to change. The package's own parts pass them.

`environments` and `tf_environments` are small; every step of theirs can be worked out
by hand:

>>> environment = testing.CountingEnvironment(length=2)
>>> [int(environment.step(0).observation) for _ in range(4)]
[0, 1, 2, 0]
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
