from . import fakes as fakes
