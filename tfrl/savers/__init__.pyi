from . import serialization as serialization
from . import whole_checkpoints as whole_checkpoints
from .whole_checkpoints import Checkpointer as Checkpointer
from .whole_checkpoints import CheckpointError as CheckpointError
