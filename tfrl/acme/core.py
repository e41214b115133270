"""`Actor`, what an `EnvironmentLoop` drives, and `Saveable`."""

from tfrl.core import Actor as Actor
from tfrl.savers.saveable import Saveable as Saveable
