"""TF-Agents' place for variables that several processes share.

>>> from tfrl.experimental import distributed
>>> distributed.reverb_variable_container.DEFAULT_TABLE
'variables'
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
