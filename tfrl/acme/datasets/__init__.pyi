from . import image_augmentation as image_augmentation
from . import numpy_iterator as numpy_iterator
from . import reverb as reverb
from .numpy_iterator import NumpyIterator as NumpyIterator
from .reverb import make_reverb_dataset as make_reverb_dataset
