"""The settings that agents with an actor and a critic share, explained once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from tfrl.agents import checks, options
from tfrl.policies import tf_policy
from tfrl.typing import types
from tfrl.utils import number_checks


@dataclasses.dataclass(frozen=True)
class OnPolicyOptions:
    """The options of an on-policy agent: its policies and its loss.

    Attributes:
      greedy_eval: Whether `policy` takes the mode of the distribution; if not, it
        samples.
      lambda_value: The lambda of the advantages; 1 takes all rewards up to the end of
        the data.
      discount_factor: The discount factor.
      entropy_regularization: The weight of the entropy bonus.
      value_pred_loss_coef: The weight of the critic's squared error.
      gradient_clipping: The largest norm of all gradients together; None does not clip.
      update_normalizers_in_train: Whether `train` updates the normalizers when it ends.
        An `OnPolicyLoop` with minibatches updates them instead, after its last epoch.
      observation_and_action_constraint_splitter: A function from an observation to the
        pair (input of the networks, mask of valid actions `[B, num_actions]`), for one
        discrete action spec. For an action of several choices, see the argument `mask`
        of `CategoricalProjectionNetwork.call`. Normalizers do not see the mask.
      exploration: A function that makes `collect_policy` from the policy that samples;
        None collects with that policy itself. It must keep the distribution of each
        action, which the losses use, and may relate the actions of several steps. With
        an actor that has a `StateDependentNoiseProjectionNetwork`, it may return a
        `StateDependentNoisePolicy`.
    """

    greedy_eval: bool = True
    lambda_value: float = 1.0
    discount_factor: float = 0.99
    entropy_regularization: float = 0.0
    value_pred_loss_coef: float = 0.5
    gradient_clipping: float | None = None
    update_normalizers_in_train: bool = True
    observation_and_action_constraint_splitter: types.Splitter | None = None
    exploration: Callable[[tf_policy.TFPolicy], tf_policy.TFPolicy] | None = None

    def __post_init__(self) -> None:
        """Checks the numbers. Tensors are not checked.

        Raises:
          ValueError: A number is out of range.
          TypeError: A setting is not a number.
        """
        for name in ("discount_factor", "lambda_value"):
            number_checks.check_number(
                name, getattr(self, name), 0.0, 1.0, remedy="0.99 and 0.95 are usual"
            )
        check_weights(
            value_pred_loss_coef=self.value_pred_loss_coef,
            entropy_regularization=self.entropy_regularization,
        )
        checks.check_gradient_clipping(self.gradient_clipping)


class OnPolicySettings(options.AgentSettings, total=False):
    """The fields of `OnPolicyOptions` and `AgentOptions` as keyword arguments."""

    greedy_eval: bool
    lambda_value: float
    discount_factor: float
    entropy_regularization: float
    value_pred_loss_coef: float
    gradient_clipping: float | None
    update_normalizers_in_train: bool
    observation_and_action_constraint_splitter: types.Splitter | None
    exploration: Callable[[tf_policy.TFPolicy], tf_policy.TFPolicy] | None


def check_weights(**weights: Any) -> None:
    """Raises an error unless the weights of a loss's parts are at least 0."""
    for name, value in weights.items():
        number_checks.check_number(
            name, value, 0.0, remedy="it is the weight of a part of the loss"
        )
