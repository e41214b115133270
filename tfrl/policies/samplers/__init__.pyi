from . import qtopt_cem_actions_sampler as qtopt_cem_actions_sampler
from . import (
    qtopt_cem_actions_sampler_continuous as qtopt_cem_actions_sampler_continuous,
)
from . import (
    qtopt_cem_actions_sampler_continuous_and_one_hot as qtopt_cem_actions_sampler_continuous_and_one_hot,  # noqa: E501
)
from . import qtopt_cem_actions_sampler_hybrid as qtopt_cem_actions_sampler_hybrid
from .qtopt_cem_actions_sampler import ActionsSampler as ActionsSampler
from .qtopt_cem_actions_sampler import SampleClipper as SampleClipper
from .qtopt_cem_actions_sampler import SampleRejecter as SampleRejecter
