"""Networks for environments that say which actions are legal."""

from tfrl.networks.legal_actions import EpsilonGreedy as EpsilonGreedy
from tfrl.networks.legal_actions import MaskedSequential as MaskedSequential
