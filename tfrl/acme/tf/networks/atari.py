"""Networks for Atari."""

from tfrl.networks.atari import DeepIMPALAAtariNetwork as DeepIMPALAAtariNetwork
from tfrl.networks.atari import DQNAtariNetwork as DQNAtariNetwork
from tfrl.networks.atari import IMPALAAtariNetwork as IMPALAAtariNetwork
from tfrl.networks.atari import R2D2AtariNetwork as R2D2AtariNetwork
from tfrl.networks.vision import AtariTorso as AtariTorso
