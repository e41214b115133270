"""Training of bandits at the path of TF-Agents' examples.

>>> from tfrl.bandits.agents.examples.v2 import trainer
>>> trainer.train.__name__
'train'
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
