"""Specs of bandits whose arms have features, at TF-Agents' path.

>>> from tfrl.bandits.specs import utils
>>> utils.create_per_arm_observation_spec(4, 3, max_num_actions=5)["per_arm"].shape
TensorShape([5, 3])
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
