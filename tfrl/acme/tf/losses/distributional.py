"""The losses of distributional critics."""

from tfrl import absent
from tfrl.losses.distributional import categorical as categorical
from tfrl.losses.distributional import l2_project as l2_project
from tfrl.losses.distributional import multiaxis_categorical as multiaxis_categorical

__getattr__, __path__ = absent.explained(__name__)
