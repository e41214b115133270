"""Parts of training in several processes, whose interfaces may still change.

>>> from tfrl.experimental import distributed
>>> distributed.reverb_variable_container.DEFAULT_TABLE
'variables'
"""

from tfrl import absent

__getattr__, __dir__, __all__ = absent.attach_stub(__name__, __file__)
