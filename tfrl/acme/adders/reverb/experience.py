"""`to_experience`: the items of adders as what agents train on."""

from tfrl.adders.experience import n_step_from_trajectory as n_step_from_trajectory
from tfrl.adders.experience import to_experience as to_experience
