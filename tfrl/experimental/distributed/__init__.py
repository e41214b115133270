"""Variables that several processes share through a replay server.

>>> import tensorflow as tf
>>> from tfrl import replay_service
>>> from tfrl.experimental import distributed
>>> table = replay_service.Table(
...     "variables",
...     sampler=replay_service.selectors.Uniform(),
...     remover=replay_service.selectors.Fifo(),
...     rate_limiter=replay_service.rate_limiters.MinSize(1),
...     max_size=1,
...     signature=[tf.TensorSpec([2], tf.float32)],
... )
>>> server = replay_service.Server([table])
>>> container = distributed.ReverbVariableContainer(f"localhost:{server.port}")
>>> container.push([tf.Variable([1.0, 2.0])])  # the learner
>>> weights = [tf.Variable([0.0, 0.0])]
>>> container.update(weights)  # an actor
>>> weights[0].numpy().tolist()
[1.0, 2.0]
>>> server.stop()
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
