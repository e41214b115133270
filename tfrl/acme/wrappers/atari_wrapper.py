"""The usual preprocessing of Atari games."""

from tfrl.wrappers.atari_wrapper import AtariWrapper as AtariWrapper
