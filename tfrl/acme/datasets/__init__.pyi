from . import reverb as reverb
from .reverb import make_reverb_dataset as make_reverb_dataset
