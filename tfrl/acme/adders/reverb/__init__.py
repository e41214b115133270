"""Adders that turn an actor's steps into items of a replay server.

They write transitions, sequences or whole episodes to the tables of
`tfrl.replay_service`. `to_experience` turns sampled items into the experience that
agents train on. An adder needs no TensorFlow; only signatures and `to_experience`
import it.

>>> import dm_env
>>> from tfrl import replay_service
>>> from tfrl.acme.adders import reverb as adders
>>> table = replay_service.Table.queue(adders.DEFAULT_PRIORITY_TABLE, max_size=100)
>>> server = replay_service.Server([table])
>>> client = server.localhost_client()
>>> adder = adders.NStepTransitionAdder(client, n_step=2, discount=0.5)
>>> adder.add_first(dm_env.restart(observation=0.0))
>>> adder.add(1, dm_env.transition(reward=1.0, observation=0.1))
>>> adder.add(1, dm_env.termination(reward=1.0, observation=0.2))
>>> items = client.sample(table.name, num_samples=3, emit_timesteps=False)
>>> [float(item.data[2]) for item in items]  # The rewards over one or two steps.
[1.0, 1.5, 1.0]
>>> server.stop()
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
