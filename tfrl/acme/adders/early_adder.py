"""`EarlyAdder`: the calls of Acme of 2020."""

from tfrl.adders.early_adder import EarlyAdder as EarlyAdder
