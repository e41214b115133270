"""The specs of bandits at TF-Agents' path, and a check of arms."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrl.specs.bandit_spec_utils import (
    CONSTRAINTS_SPEC_KEY as CONSTRAINTS_SPEC_KEY,
)
from tfrl.specs.bandit_spec_utils import GLOBAL_FEATURE_KEY as GLOBAL_FEATURE_KEY
from tfrl.specs.bandit_spec_utils import (
    NUM_ACTIONS_FEATURE_KEY as NUM_ACTIONS_FEATURE_KEY,
)
from tfrl.specs.bandit_spec_utils import PER_ARM_FEATURE_KEY as PER_ARM_FEATURE_KEY
from tfrl.specs.bandit_spec_utils import REWARD_SPEC_KEY as REWARD_SPEC_KEY
from tfrl.specs.bandit_spec_utils import (
    create_per_arm_observation_spec as create_per_arm_observation_spec,
)
from tfrl.specs.bandit_spec_utils import drop_arm_observation as drop_arm_observation
from tfrl.specs.bandit_spec_utils import (
    get_context_dims_from_spec as get_context_dims_from_spec,
)


def checked_arms(name: str, values: Any, number: int | None = None) -> np.ndarray:
    """Returns arms as int64.

    Args:
      name: The argument's name, for the error.
      values: Numbers of any shape.
      number: The number of arms; None checks no bounds.

    Raises:
      ValueError: A value is not an arm.
    """
    values = np.asarray(values)
    with np.errstate(invalid="ignore"):
        arms = values.astype(np.int64)
    wrong = arms != values
    if number is not None:
        wrong |= (arms < 0) | (arms >= number)
    if np.any(wrong):
        last = "" if number is None else f" to {number - 1}"
        raise ValueError(
            f"{name}: got {values[wrong][0]}, expected whole numbers from 0{last}, "
            "each of an arm; subtract 1 from arms that begin at 1."
        )
    return arms
