"""The adder of n-step transitions."""

from tfrl.adders.transition import NStepTransitionAdder as NStepTransitionAdder
