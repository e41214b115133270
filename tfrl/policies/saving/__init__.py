"""SavedModels of policies: the parts of `PolicySaver`.

>>> import tensorflow as tf
>>> from tfrl.policies.saving import saved_model
>>> saved_model.add_outer_dims(tf.TensorSpec([4]), [None]).shape
TensorShape([None, 4])
"""
