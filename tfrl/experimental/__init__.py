"""Parts of training in several processes, whose interfaces may still change.

>>> from tfrl.experimental import distributed
>>> distributed.reverb_variable_container.DEFAULT_TABLE
'variables'
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
