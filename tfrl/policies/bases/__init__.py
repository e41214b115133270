"""The base classes of policies that wrap another policy or add noise to its actions.

>>> import tensorflow as tf
>>> from tfrl import policies, specs, trajectories
>>> from tfrl.policies.bases import wrapper_policy
>>> class Opposite(wrapper_policy.WrapperPolicy):
...     def _action(self, time_step, policy_state, seed):
...         step = self.wrapped_policy.action(time_step, policy_state, seed)
...         return step._replace(action=-step.action)
>>> time_step_spec = trajectories.time_step_spec(tf.TensorSpec([1]))
>>> action_spec = specs.BoundedTensorSpec([], tf.float32, -1, 1)
>>> policy = Opposite(policies.FixedPolicy(0.5, time_step_spec, action_spec))
>>> time_step = trajectories.restart(tf.zeros([2, 1]), batch_size=2)
>>> policy.action(time_step).action.numpy()
array([-0.5, -0.5], dtype=float32)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
