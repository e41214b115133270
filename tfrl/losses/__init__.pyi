from . import huber as huber
from . import returns as returns
from . import td as td
from .huber import huber_loss as huber_loss
from .huber import squared_loss as squared_loss
from .returns import discounted_return as discounted_return
from .returns import discounted_returns as discounted_returns
from .returns import (
    generalized_advantage_estimation as generalized_advantage_estimation,
)
from .returns import lambda_returns as lambda_returns
from .returns import n_step_returns as n_step_returns
from .td import double_q_learning as double_q_learning
from .td import q_learning as q_learning
from .td import td_error as td_error
from .td import td_target as td_target
