"""TensorFlow-native reinforcement learning.

The packages are the rooms of the library; import what you need from them, either from
the package (`from tfrl.agents import DqnAgent`) or from TF-Agents' module paths
(`from tfrl.agents.dqn import dqn_agent`). Importing `tfrl` itself imports nothing
heavy: packages load on first use. What it changes in the process is in `tfrl.startup`;
`TFRL_STARTUP=plain` in the environment turns that off. If `tfrl` is imported before
TensorFlow, TensorFlow's start-up messages do not appear; `TF_CPP_MIN_LOG_LEVEL=0` shows
them. With `TFRL_PORTABLE=1`, more kinds of processors round alike.

>>> import tfrl
>>> tfrl.agents.DqnAgent.__name__
'DqnAgent'
"""

from tfrl import imports, startup
from tfrl.version import __version__ as __version__

startup.start()

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
