"""Adders: turn an actor's steps into items of a replay server, as in Acme.

An adder is told of every step of an episode, and writes transitions, sequences or whole
episodes to the tables of `tfrl.replay_service`. `to_experience` turns sampled items
into the experience that agents train on. `tfrl.adders.reverb` is Acme's name for this
package.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
