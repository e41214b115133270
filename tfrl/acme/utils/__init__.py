"""Loggers, counters and paths.

>>> from tfrl.acme.utils import counting
>>> parent = counting.Counter()
>>> counting.Counter(parent, prefix="learner", time_delta=0).increment(steps=5)
{'learner_steps': 5}
>>> parent.get_counts()
{'learner_steps': 5}
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
