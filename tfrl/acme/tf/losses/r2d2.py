"""The loss of R2D2."""

from tfrl.losses.value_rescaling import LossCoreExtra as LossCoreExtra
from tfrl.losses.value_rescaling import (
    transformed_n_step_loss as transformed_n_step_loss,
)
