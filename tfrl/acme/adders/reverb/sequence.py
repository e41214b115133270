"""The adder of sequences."""

from tfrl.adders.sequence import EndBehavior as EndBehavior
from tfrl.adders.sequence import SequenceAdder as SequenceAdder
