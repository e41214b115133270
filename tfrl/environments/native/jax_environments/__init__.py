"""Environments written in JAX, as parts of TensorFlow's programs.

JAX only traces them. What it lowers is StableHLO, which XLA compiles into one program
with the agent. `environments.suites` has the libraries' names, such as
"gymnax/Breakout-MinAtar"; `native.from_jax` takes an environment of your own.

>>> from tfrl.environments.native import jax_environments
>>> library, name = jax_environments.libraries.find("gymnax/Breakout-MinAtar")
>>> library.distribution, name
('gymnax', 'Breakout-MinAtar')
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
