"""The schedule in which actors and learner take turns; see `lockstep.rounds`.

>>> from tfrl.distribute.lockstep import rounds
>>> rounds.orders(3), rounds.rollouts(3), rounds.states(3)  # Tables of actor 3.
('orders_3', 'rollouts_3', 'states_3')
>>> rounds.from_array(rounds.to_array(b"the state of an actor"))
b'the state of an actor'
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
