"""Reverb's path of the checkpointers.

>>> from tfrl import replay_service as reverb
>>> from tfrl.replay_service.platform import checkpointers_lib
>>> checkpointers_lib.DefaultCheckpointer is reverb.checkpointers.DefaultCheckpointer
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
