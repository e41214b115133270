"""Acme's name for the adders: `from tfrl.adders import reverb as adders`."""

from tfrl.adders.episode import EpisodeAdder, PaddedEpisodeAdder
from tfrl.adders.priorities import DEFAULT_PRIORITY_TABLE, PriorityFn, PriorityFnInput
from tfrl.adders.reverb_adder import ReverbAdder
from tfrl.adders.sequence import EndBehavior, SequenceAdder
from tfrl.adders.steps import Step, Trajectory
from tfrl.adders.structured import (
    StructuredAdder,
    create_n_step_transition_config,
    create_sequence_config,
    create_step_spec,
)
from tfrl.adders.transition import NStepTransitionAdder

__all__ = [
    "DEFAULT_PRIORITY_TABLE",
    "EndBehavior",
    "EpisodeAdder",
    "NStepTransitionAdder",
    "PaddedEpisodeAdder",
    "PriorityFn",
    "PriorityFnInput",
    "ReverbAdder",
    "SequenceAdder",
    "Step",
    "StructuredAdder",
    "Trajectory",
    "create_n_step_transition_config",
    "create_sequence_config",
    "create_step_spec",
]
