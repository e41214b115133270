"""TensorFlow-native reinforcement learning.

The packages are the rooms of the library; import what you need from them, either from
the package (`from tfrl.agents import DqnAgent`) or from TF-Agents' module paths
(`from tfrl.agents.dqn import dqn_agent`). Importing `tfrl` itself imports nothing
heavy: packages load on first use. If `tfrl` is imported before TensorFlow, TensorFlow's
start-up messages do not appear; `TF_CPP_MIN_LOG_LEVEL=0` shows them. With
`TFRL_PORTABLE=1` in the environment, more kinds of processors round alike.

>>> import tfrl
>>> tfrl.agents.DqnAgent.__name__
'DqnAgent'
"""

from tfrl import absent, garbage
from tfrl.compilation import gpu_flags, program_cache
from tfrl.system import log, portable, quiet
from tfrl.version import __version__ as __version__

absent.install()
portable.install()
quiet.install()
gpu_flags.install(quiet.has_visible_gpu, log.info)
program_cache.install(log.info)
garbage.install()

__getattr__, __dir__, __all__ = absent.attach_stub(__name__, __file__)
