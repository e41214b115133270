from . import agent as agent
from . import tf as tf
