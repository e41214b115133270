"""Several heads on one input."""

from tfrl.networks.multihead import Multihead as Multihead
