"""The specs of `tfrl.specs.bandit_spec_utils`, at TF-Agents' path."""

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
