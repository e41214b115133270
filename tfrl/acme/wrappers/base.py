"""The base class of wrappers."""

from tfrl.wrappers.base import EnvironmentWrapper as EnvironmentWrapper
from tfrl.wrappers.base import wrap_all as wrap_all
