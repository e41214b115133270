from . import aggregation as aggregation
from . import discounting as discounting
from . import dpg as dpg
from . import huber as huber
from . import returns as returns
from . import standardization as standardization
from . import td as td
from .aggregation import AggregatedLosses as AggregatedLosses
from .aggregation import aggregate_losses as aggregate_losses
from .aggregation import expand_weights as expand_weights
from .aggregation import masked_mean as masked_mean
from .discounting import discounted_future_sum as discounted_future_sum
from .discounting import discounted_future_sum_masked as discounted_future_sum_masked
from .discounting import shift_values as shift_values
from .dpg import clipped_double_q as clipped_double_q
from .dpg import deterministic_policy_gradient as deterministic_policy_gradient
from .dpg import smoothed_action as smoothed_action
from .huber import huber_loss as huber_loss
from .huber import squared_loss as squared_loss
from .returns import discounted_return as discounted_return
from .returns import discounted_returns as discounted_returns
from .returns import (
    generalized_advantage_estimation as generalized_advantage_estimation,
)
from .returns import lambda_returns as lambda_returns
from .returns import n_step_returns as n_step_returns
from .standardization import standardize as standardize
from .td import action_value as action_value
from .td import best_action_value as best_action_value
from .td import double_q_learning as double_q_learning
from .td import largest_error as largest_error
from .td import q_learning as q_learning
from .td import td_error as td_error
from .td import td_target as td_target
