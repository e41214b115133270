"""Helpers for nests of tensors and for the variables of networks."""

from tfrl.utils.tf2_utils import Checkpointer as Checkpointer
from tfrl.utils.tf2_utils import add_batch_dim as add_batch_dim
from tfrl.utils.tf2_utils import batch_concat as batch_concat
from tfrl.utils.tf2_utils import batch_to_sequence as batch_to_sequence
from tfrl.utils.tf2_utils import create_variables as create_variables
from tfrl.utils.tf2_utils import squeeze_batch_dim as squeeze_batch_dim
from tfrl.utils.tf2_utils import stack_sequence_fields as stack_sequence_fields
from tfrl.utils.tf2_utils import tile_nested as tile_nested
from tfrl.utils.tf2_utils import tile_tensor as tile_tensor
from tfrl.utils.tf2_utils import to_numpy as to_numpy
from tfrl.utils.tf2_utils import to_numpy_squeeze as to_numpy_squeeze
from tfrl.utils.tf2_utils import zeros_like as zeros_like
