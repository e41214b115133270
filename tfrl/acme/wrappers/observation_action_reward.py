"""Observations with the last action and reward."""

from tfrl.wrappers.observation_action_reward import OAR as OAR
from tfrl.wrappers.observation_action_reward import (
    ObservationActionRewardWrapper as ObservationActionRewardWrapper,
)
