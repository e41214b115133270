"""Helpers of adders."""

from tfrl.acme.adders.reverb.base import calculate_priorities as calculate_priorities
from tfrl.acme.adders.reverb.base import final_step_like as final_step_like
from tfrl.acme.adders.reverb.base import zeros_like as zeros_like
