"""Plays several Atari games at once, each on a thread of ale-py's C++ code.

>>> from tfrl.environments import suite_atari
>>> games = suite_atari.load_batch("ALE/Pong-v5", 2)
>>> games.reset().observation.shape
(2, 84, 84, 4)
>>> games.close()
"""
