"""Fakes for tests of programs.

>>> from tfrl.acme.testing import fakes
>>> environment = fakes.DiscreteEnvironment(num_actions=2, num_observations=4)
>>> int(environment.reset().observation)
0
>>> sample = next(iter(fakes.transition_dataset(environment)))
>>> int(sample.data.next_observation)
0
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
