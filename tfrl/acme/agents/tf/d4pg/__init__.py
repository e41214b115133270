"""D4PG for an `EnvironmentLoop`, with a `tfrl.agents.D4pgAgent`.

>>> import keras
>>> import numpy as np
>>> from tfrl.acme import specs
>>> from tfrl.acme.agents.tf import d4pg
>>> from tfrl.acme.tf import networks
>>> agent = d4pg.D4PG(
...     specs.EnvironmentSpec(
...         observations=specs.Array((3,), np.float32),
...         actions=specs.BoundedArray((1,), np.float32, -1, 1),
...         rewards=specs.Array((), np.float32),
...         discounts=specs.BoundedArray((), np.float32, 0, 1),
...     ),
...     policy_network=keras.layers.Dense(1, activation="tanh"),
...     critic_network=networks.Sequential(
...         [
...             networks.CriticMultiplexer(),
...             networks.LayerNormMLP((8,), activate_final=True),
...             networks.DiscreteValuedHead(vmin=0.0, vmax=1.0, num_atoms=3),
...         ]
...     ),
...     checkpoint=False,
... )
>>> agent.select_action(np.zeros(3, np.float32)).shape
(1,)
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
