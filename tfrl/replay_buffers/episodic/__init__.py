"""Storage, reading and argument checks of the episodic replay buffers.

>>> from tfrl.replay_buffers.episodic import episodic_arguments
>>> episodic_arguments.checked_ids([3, 5], rank=1).numpy().tolist()
[3, 5]
"""
