"""Training loops, and runs that evaluate, save, resume and plot them.

>>> import keras
>>> from tfrl import agents, environments, networks, replay_buffers, train
>>> environment = environments.TFPyEnvironment(
...     environments.suite_gym.load("CartPole-v1")
... )
>>> specs = environment.time_step_spec(), environment.action_spec()
>>> agent = agents.DqnAgent(
...     *specs,
...     q_network=networks.QNetwork(specs[0].observation, specs[1], seed=0),
...     optimizer=keras.optimizers.Adam(1e-3),
...     gamma=0.99,
...     target_update_tau=0.02,
...     seed=0,
... )
>>> replay_buffer = replay_buffers.TFUniformReplayBuffer(
...     agent.collect_data_spec, batch_size=1, max_length=10_000, seed=0
... )
>>> loop = train.OffPolicyLoop(environment, agent, replay_buffer, seed=0)
>>> int(loop.run(100).iteration)  # one call: collect, add, sample and train
100
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
