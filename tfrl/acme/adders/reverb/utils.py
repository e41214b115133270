"""Helpers of adders."""

from tfrl.acme.adders.reverb.priorities import (
    calculate_priorities as calculate_priorities,
)
from tfrl.acme.adders.reverb.steps import final_step_like as final_step_like
from tfrl.acme.adders.reverb.steps import zeros_like as zeros_like
