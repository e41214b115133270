"""The adder of items by patterns."""

from tfrl.adders.experience import n_step_from_trajectory as n_step_from_trajectory
from tfrl.adders.sequence import EndBehavior as EndBehavior
from tfrl.adders.steps import Step as Step
from tfrl.adders.steps import Trajectory as Trajectory
from tfrl.adders.structured import StructuredAdder as StructuredAdder
from tfrl.adders.structured import (
    create_n_step_transition_config as create_n_step_transition_config,
)
from tfrl.adders.structured import create_sequence_config as create_sequence_config
from tfrl.adders.structured import create_step_spec as create_step_spec
