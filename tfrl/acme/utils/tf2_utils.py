"""Re-exports `tf.utils` at its path of 2020."""

from tfrl.acme.tf.utils import Checkpointer as Checkpointer
from tfrl.acme.tf.utils import add_batch_dim as add_batch_dim
from tfrl.acme.tf.utils import batch_concat as batch_concat
from tfrl.acme.tf.utils import batch_to_sequence as batch_to_sequence
from tfrl.acme.tf.utils import create_variables as create_variables
from tfrl.acme.tf.utils import squeeze_batch_dim as squeeze_batch_dim
from tfrl.acme.tf.utils import stack_sequence_fields as stack_sequence_fields
from tfrl.acme.tf.utils import tile_nested as tile_nested
from tfrl.acme.tf.utils import tile_tensor as tile_tensor
from tfrl.acme.tf.utils import to_numpy as to_numpy
from tfrl.acme.tf.utils import to_numpy_squeeze as to_numpy_squeeze
from tfrl.acme.tf.utils import zeros_like as zeros_like
