"""Conformance suites: does your own part keep the contracts that the others rely on?

Inherit a suite, say how to make the part, and run the tests with pytest:

>>> from tfrl import testing
>>> from tfrl.environments import suite_gym
>>> class TestMyEnvironment(testing.PyEnvironmentConformance):
...     def make_environment(self):
...         return suite_gym.load("CartPole-v1")
>>> TestMyEnvironment().run_all()  # what pytest does, check by check

With unittest inherit `unittest.TestCase` besides. There is a suite each for Python and
TensorFlow environments, networks, policies, replay buffers and agents; what fails says
what came, what was expected and what to change. The package's own parts pass them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
