"""Helpers of adders."""

from tfrl.adders.priorities import calculate_priorities as calculate_priorities
from tfrl.adders.steps import final_step_like as final_step_like
from tfrl.adders.steps import zeros_like as zeros_like
