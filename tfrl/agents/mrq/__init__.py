"""MR.Q: values of learned embeddings of states and actions (Fujimoto et al., 2025).

>>> import keras
>>> from tfrl.agents import mrq
>>> from tfrl.environments import native
>>> environment = native.load("Pendulum-v1", 1)
>>> specs = environment.observation_spec(), environment.action_spec()
>>> agent = mrq.MrqAgent(
...     environment.time_step_spec(),
...     environment.action_spec(),
...     *mrq.make_networks(*specs, hidden_size=64),
...     encoder_optimizer=keras.optimizers.AdamW(1e-4, weight_decay=1e-4),
...     actor_optimizer=keras.optimizers.AdamW(3e-4, weight_decay=1e-4),
...     critic_optimizer=keras.optimizers.AdamW(3e-4, weight_decay=1e-4),
... )
>>> agent.train_sequence_length
6
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
