"""Evaluation of policies: metrics, unbiased returns, and statistics over seeds.

>>> from tfrl.environments import suite_gym, tf_py_environment
>>> from tfrl.eval import metric_utils, statistics
>>> from tfrl.metrics import tf_metrics
>>> from tfrl.policies import RandomTFPolicy
>>> environment = tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v1"))
>>> policy = RandomTFPolicy(environment.time_step_spec(), environment.action_spec())
>>> results = metric_utils.eager_compute(
...     [tf_metrics.AverageReturnMetric()], environment, policy, num_episodes=2
... )
>>> list(results)
['AverageReturn']
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
