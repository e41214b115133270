"""Checks and makes what on-policy agents are built from."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tfrl.agents import checks
from tfrl.agents.on_policy import advantages as advantages_lib
from tfrl.agents.ppo import ppo_policy
from tfrl.policies import utils as policy_utils
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils import number_checks, variables
from tfrl.utils.tensor_normalizer import StreamingTensorNormalizer


class LossWeights(NamedTuple):
    """The weights of all parts of the loss but the policy's."""

    value: float = 0.5
    entropy: float = 0.0
    policy_l2: float = 0.0
    value_l2: float = 0.0
    shared_l2: float = 0.0


def check_networks(**networks: Any) -> None:
    """Raises a TypeError if a network is None."""
    for name, network in networks.items():
        if network is None:
            raise TypeError(
                f"{name}: got None, expected a network; make both networks with "
                "agents.ppo.ppo_networks.create_networks(observation_spec, "
                "action_spec)."
            )


def check_numbers(
    advantage_estimator: advantages_lib.AdvantageEstimator,
    loss_weights: LossWeights,
    num_epochs: int,
) -> None:
    """Raises an error if a number is out of range."""
    for name, value in (
        ("discount_factor", advantage_estimator.discount_factor),
        ("lambda_value", advantage_estimator.lambda_),
    ):
        number_checks.check_number(
            name, value, 0.0, 1.0, remedy="0.99 and 0.95 are usual"
        )
    names = {
        "value_pred_loss_coef": loss_weights.value,
        "entropy_regularization": loss_weights.entropy,
        "policy_l2_reg": loss_weights.policy_l2,
        "value_function_l2_reg": loss_weights.value_l2,
        "shared_vars_l2_reg": loss_weights.shared_l2,
    }
    for name, value in names.items():
        number_checks.check_number(
            name, value, 0.0, remedy="it is the weight of a part of the loss"
        )
    number_checks.check_integer(
        "num_epochs", num_epochs, 1, remedy="it is the number of updates a call"
    )


def streaming_normalizer(
    time_step_spec: ts.TimeStep, splitter: Any
) -> StreamingTensorNormalizer:
    """Returns a normalizer of the observations that networks see, without masks."""
    checks.check_time_step_spec(time_step_spec)
    observation_spec = policy_utils.network_observation_spec(
        tensor_spec.from_spec(time_step_spec.observation), splitter
    )
    return StreamingTensorNormalizer(observation_spec, scope="normalize_observations")


class Policies(NamedTuple):
    """The policies of one agent, which share their networks.

    Attributes:
      collect: Collects, and records the distributions. Its actions stay unclipped,
        because the recorded distributions are those of unclipped actions. It does not
        compute values: `preprocess_sequence` or `train` does so for whole sequences.
      sample: Samples actions within their bounds.
      train: Calls the actor in training mode.
    """

    collect: ppo_policy.PPOPolicy
    sample: ppo_policy.PPOPolicy
    train: ppo_policy.PPOPolicy


def make_policies(
    time_step_spec: ts.TimeStep,
    action_spec: Any,
    actor_net: Any,
    value_net: Any,
    splitter: Any,
    seed: int | None,
    *,
    collect_net: Any,
    records_state: bool,
) -> Policies:
    """Makes the policies; see `OnPolicyAgent` for the arguments.

    `collect_net` is the actor of the policy that collects.
    """
    parts: dict[str, Any] = {
        "time_step_spec": time_step_spec,
        "action_spec": action_spec,
        "value_network": value_net,
        "observation_and_action_constraint_splitter": splitter,
        "seed": seed,
    }
    return Policies(
        collect=ppo_policy.PPOPolicy(
            **parts,
            actor_network=collect_net,
            clip=False,
            compute_value_and_advantage_in_train=True,
            records_state=records_state,
        ),
        sample=ppo_policy.PPOPolicy(**parts, actor_network=actor_net, collect=False),
        train=ppo_policy.PPOPolicy(
            **parts, actor_network=actor_net, collect=False, training=True
        ),
    )


def kernels(actor_net: Any, value_net: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Returns the kernels of the actor alone, of the critic alone, and of both."""
    of_actor, of_critic = (
        [v for v in network.trainable_variables if "kernel" in v.name]
        for network in (actor_net, value_net)
    )
    shared = variables.extract_shared_variables(of_actor, of_critic)
    is_shared = {id(v) for v in shared}
    return (
        [v for v in of_actor if id(v) not in is_shared],
        [v for v in of_critic if id(v) not in is_shared],
        shared,
    )


def check_has_entropy(policy: ppo_policy.PPOPolicy, coefficient: float) -> None:
    """Raises a ValueError if the entropy bonus would leave out an action.

    Args:
      policy: A policy that samples.
      coefficient: The weight of the bonus, for the message.
    """
    time_step = tensor_spec.zero_spec_nest(policy.time_step_spec, outer_dims=[1])
    if not has_entropy(policy.distribution(time_step).action):
        raise ValueError(
            f"entropy_regularization: got {coefficient}, but a distribution of "
            "actor_net has no entropy in closed form, as those squashed to bounds by "
            "tanh; give 0, or a network with other distributions, such as the normal "
            "ones of an ActorDistributionNetwork."
        )


def has_entropy(distributions: Any) -> bool:
    """Whether all distributions of a nest have an entropy in closed form."""
    for distribution in tf.nest.flatten(distributions):
        try:
            distribution.entropy()
        except NotImplementedError:
            return False
    return True
