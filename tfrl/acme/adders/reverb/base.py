"""`ReverbAdder`, the base class of adders that write to a replay server."""

from tfrl.adders.priorities import DEFAULT_PRIORITY_TABLE as DEFAULT_PRIORITY_TABLE
from tfrl.adders.priorities import PriorityFn as PriorityFn
from tfrl.adders.priorities import PriorityFnInput as PriorityFnInput
from tfrl.adders.priorities import PriorityFnMapping as PriorityFnMapping
from tfrl.adders.reverb_adder import ReverbAdder as ReverbAdder
from tfrl.adders.steps import Step as Step
from tfrl.adders.steps import Trajectory as Trajectory
