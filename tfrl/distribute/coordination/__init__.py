"""How the processes of a run on several hosts know of each other.

Each of them tells the coordinator about itself, in JSON:

>>> from tfrl.distribute.coordination import coordinator
>>> note = coordinator.to_array({"task": "actor/0", "pid": 7})
>>> note.dtype.name, note.shape
('uint8', (1024,))
>>> coordinator.from_array(note)
{'task': 'actor/0', 'pid': 7}
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
