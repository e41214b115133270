"""Training of bandits at the path of TF-Agents' examples.

>>> from tfrl.bandits.agents.examples.v2 import trainer
>>> trainer.train.__name__
'train'
"""

from tfrl import absent

__getattr__, __dir__, __all__ = absent.attach_stub(__name__, __file__)
