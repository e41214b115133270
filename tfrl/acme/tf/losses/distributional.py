"""The losses of distributional critics."""

from tfrl.losses.distributional import categorical as categorical
from tfrl.losses.distributional import l2_project as l2_project
from tfrl.losses.distributional import multiaxis_categorical as multiaxis_categorical
