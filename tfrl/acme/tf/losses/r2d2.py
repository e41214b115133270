"""The loss of R2D2."""

from tfrl import absent
from tfrl.losses.value_rescaling import (
    transformed_n_step_loss as transformed_n_step_loss,
)

__getattr__, __path__ = absent.explained(__name__)
