from . import base as base
from . import early_adder as early_adder
from . import reverb as reverb
from . import wrappers as wrappers
from .base import Adder as Adder
from .early_adder import EarlyAdder as EarlyAdder
from .wrappers import ForkingAdder as ForkingAdder
from .wrappers import IgnoreExtrasAdder as IgnoreExtrasAdder
