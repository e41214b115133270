"""The normalizer of rewards, and the running moments with which normalizers scale.

TF-Agents' normalizers are in `tfrl.utils.tensor_normalizer`.

>>> import tensorflow as tf
>>> from tfrl.utils.normalizers import running_moments
>>> moments = running_moments.RunningMoments([], tf.float32)
>>> moments.update(tf.constant([1.0, 3.0]))
>>> float(moments.avg), float(moments.variance())
(2.0, 1.0)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
