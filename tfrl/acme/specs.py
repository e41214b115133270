"""The specs of arrays and environments."""

from tfrl.specs import Array as Array
from tfrl.specs import BoundedArray as BoundedArray
from tfrl.specs import DiscreteArray as DiscreteArray
from tfrl.specs import EnvironmentSpec as EnvironmentSpec
from tfrl.specs import make_environment_spec as make_environment_spec
