from . import drawn_networks as drawn_networks
from . import global_and_arm_feature_network as global_and_arm_feature_network
from . import heteroscedastic_q_network as heteroscedastic_q_network
from . import network_outputs as network_outputs
from .drawn_networks import DropoutRewardNetwork as DropoutRewardNetwork
from .drawn_networks import EnsembleRewardNetwork as EnsembleRewardNetwork
from .global_and_arm_feature_network import (
    GlobalAndArmCommonTowerNetwork as GlobalAndArmCommonTowerNetwork,
)
from .global_and_arm_feature_network import (
    GlobalAndArmDotProductNetwork as GlobalAndArmDotProductNetwork,
)
from .global_and_arm_feature_network import (
    create_feed_forward_common_tower_network as create_feed_forward_common_tower_network,  # noqa: E501
)
from .global_and_arm_feature_network import (
    create_feed_forward_dot_product_network as create_feed_forward_dot_product_network,
)
from .heteroscedastic_q_network import (
    HeteroscedasticQNetwork as HeteroscedasticQNetwork,
)
from .heteroscedastic_q_network import QBanditNetworkResult as QBanditNetworkResult
