"""Checks of the arguments and the updates that all agents have."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.compilation import context
from tfrl.policies import utils as policy_utils
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import actions, nest_utils, number_checks
from tfrl.utils.optimization import optimizers

# The classes of agents that have warned of actors whose actions leave their bounds.
_warned: set[type] = set()


def as_time_step_spec(time_step_spec: types.TimeStep, algorithm: str) -> ts.TimeStep:
    """Returns the specs as tensor specs; checks that the reward is one scalar.

    Args:
      time_step_spec: A `TimeStep` of specs.
      algorithm: The algorithm's name, for the error.

    Raises:
      TypeError: `time_step_spec` is not a `TimeStep`.
      ValueError: The reward is not one scalar.
    """
    check_time_step_spec(time_step_spec)
    time_step_spec = tensor_spec.from_spec(time_step_spec)
    check_scalar_reward(time_step_spec, algorithm)
    return time_step_spec


def check_collect_policy(policy: Any) -> None:
    """Raises a TypeError if a function `exploration` has returned no policy."""
    if not hasattr(policy, "info_spec"):
        raise TypeError(
            f"collect_policy: got {policy!r}, expected a policy; a function that is "
            "given as `exploration` has to return one."
        )


def check_time_step_spec(time_step_spec: types.TimeStep) -> None:
    """Raises a TypeError unless `time_step_spec` is a `TimeStep`."""
    if not isinstance(time_step_spec, ts.TimeStep):
        raise TypeError(
            "time_step_spec: expected a TimeStep of specs, got "
            f"{type(time_step_spec).__name__}; pass environment.time_step_spec()."
        )


def check_scalar_reward(time_step_spec: ts.TimeStep, algorithm: str) -> None:
    """Raises a ValueError unless the reward is one scalar."""
    reward = time_step_spec.reward
    if isinstance(reward, tf.TypeSpec) and reward.shape.rank == 0:
        return
    raise ValueError(
        f"time_step_spec.reward: {algorithm} expects one scalar reward a step, got "
        f"{reward}; add up its parts, each times its weight, in an environment "
        "wrapper whose reward_spec() is a scalar."
    )


def pair(function: str, result: Any, expected: str) -> tuple[Any, Any]:
    """Returns what a method that a subclass overrides has returned: a pair.

    Args:
      function: The name of the method.
      result: What it has returned.
      expected: What the two are.

    Raises:
      TypeError: It is no pair.
    """
    if isinstance(result, tuple | list) and len(result) == 2:
        return result[0], result[1]
    raise TypeError(
        f"{function}: expected {expected}, got {type(result).__name__}; return both."
    )


def check_gamma(gamma: types.Float) -> None:
    """Raises an error unless the discount factor is a number in [0, 1].

    Tensors and variables are not checked.
    """
    number_checks.check_number(
        "gamma", gamma, 0.0, 1.0, remedy="0.99 is usual, and 1 does not discount"
    )


def check_gradient_clipping(gradient_clipping: types.Float | None) -> None:
    """Raises an error unless the largest norm is a positive number, or None."""
    if gradient_clipping is not None:
        number_checks.check_number(
            "gradient_clipping",
            gradient_clipping,
            0.0,
            excludes_low=True,
            remedy="give the largest norm of a gradient, or None not to clip",
        )


def check_dqda_clipping(dqda_clipping: types.Float | None) -> None:
    """Raises an error unless the limit of dQ/da is None, or a number of at least 0."""
    if dqda_clipping is not None:
        number_checks.check_number(
            "dqda_clipping", dqda_clipping, 0.0, remedy="None does not clip"
        )


def check_target_update(tau: types.Float, period: types.Int | None) -> None:
    """Raises an error unless the step size is in [0, 1] and the period positive.

    A tensor as `tau` is not checked; a period of None means never.
    """
    number_checks.check_number(
        "target_update_tau",
        tau,
        0.0,
        1.0,
        remedy="0 keeps the target, 1 copies the weights",
    )
    if period is not None:
        number_checks.check_integer(
            "target_update_period", period, 1, remedy="None means never"
        )


def check_scale_of_rewards(reward_scale_factor: types.Float) -> None:
    """Raises an error unless the factor is finite; tensors are not checked."""
    number_checks.check_number(
        "reward_scale_factor", reward_scale_factor, remedy="1 keeps the rewards"
    )


def check_n_step_update(
    n_step_update: int, recurrent: bool, network: str = "network"
) -> None:
    """Raises an error if the network cannot learn from n-step returns.

    Args:
      n_step_update: The number of steps in a return.
      recurrent: Whether the network has a state.
      network: The name of the network's argument, for the error.
    """
    number_checks.check_integer(
        "n_step_update", n_step_update, 1, remedy="1 gives one-step targets"
    )
    if recurrent and n_step_update != 1:
        raise NotImplementedError(
            f"n_step_update: expected 1 with a recurrent {network}, got "
            f"{n_step_update}; recurrent networks learn from one-step targets."
        )


def check_no_td_loss(
    td_errors_loss_fn: types.LossFn | None, algorithm: str, instead: str
) -> None:
    """Raises a ValueError if a loss of TD errors is given.

    Args:
      td_errors_loss_fn: The argument.
      algorithm: The algorithm's name, for the error.
      instead: The loss that the algorithm has instead, for the error.
    """
    if td_errors_loss_fn is not None:
        raise ValueError(
            f"td_errors_loss_fn: expected None, since {algorithm} has {instead} "
            f"instead, got {td_errors_loss_fn}; leave it out."
        )


def check_numbers_per_action(
    spec: types.NestedTensorSpec, label: str, instead: str
) -> None:
    """Raises a ValueError unless a network's output is `[B, n, m]`.

    Args:
      spec: The spec of the output.
      label: The network's name, for the error.
      instead: The class of network to use, for the error.
    """
    if not (isinstance(spec, tf.TensorSpec) and spec.shape.rank == 2):
        raise ValueError(
            f"{label}: expected several numbers for each action, shape [B, n, m], got "
            f"{spec}; use a {instead}."
        )


def warn_user(message: str) -> None:
    """Warns, and names the line of the user's code that called this package.

    Args:
      message: The text of the warning.

    Warns:
      UserWarning: Always.
    """
    package = context.name_in_this_package("")
    level, frame = 1, inspect.currentframe()
    while frame and frame.f_globals.get("__name__", "").startswith(package):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def as_train_step_counter(counter: types.Variable | None = None) -> tf.Variable:
    """Returns `counter`, or a new int64 variable for None.

    Raises:
      TypeError: `counter` is not an integer variable.
    """
    if counter is None:
        return tf.Variable(0, trainable=False, dtype=tf.int64, name="train_step")
    if not (isinstance(counter, tf.Variable) and counter.dtype.is_integer):
        raise TypeError(
            "train_step_counter: expected an integer tf.Variable, got "
            f"{counter!r}; pass tf.Variable(0, dtype=tf.int64), or None."
        )
    return counter


def check_finite(loss: tf.Tensor, algorithm: str) -> tf.Tensor:
    """Returns `loss`; raises an InvalidArgumentError if it is NaN or infinite.

    Operations that must not run after a failure, such as the update, must depend on the
    result.
    """
    return context.assert_finite(
        loss,
        f"experience: the {algorithm} loss is not finite, expected a number; look for "
        "NaN or infinite observations and rewards (the first is found by "
        "tf.debugging.enable_check_numerics()), or lower the learning rate. No weight "
        "was changed by this optimizer",
    )


def check_finite_gradients(
    gradients: Sequence[types.Tensor | None], algorithm: str
) -> tf.Tensor:
    """Returns a scalar; raises an InvalidArgumentError if gradients are not finite.

    Gradients whose sum of squares overflows are refused, too: an optimizer that keeps
    a mean of the squares, such as Adam, would never change the weights again.
    Operations that must not run after a failure, such as the update, must depend on the
    result.

    Args:
      gradients: Tensors, `tf.IndexedSlices` or None.
      algorithm: The name of the agent's class, for the error's text.
    """
    return context.assert_finite(
        optimizers.half_squared_norm(gradients),
        f"experience: the {algorithm} loss is finite, but the sum of the squares of "
        "its gradients is not, expected a number; look for huge observations and "
        "rewards, and scale them to about 1 or clip them. No weight was changed by "
        "this optimizer",
    )


def as_continuous_action_spec(
    action_spec: types.NestedTensorSpec, algorithm: str, *, of_one_value: bool = True
) -> types.BoundedTensorSpec:
    """Returns the specs of bounded continuous actions as tensor specs.

    Args:
      action_spec: A nest of specs.
      algorithm: The algorithm's name, for the error.
      of_one_value: Whether a part of an action may have one value only.

    Raises:
      ValueError: An action is discrete, has no bounds, or can have one value only.
    """
    action_spec = tensor_spec.from_spec(action_spec)
    for path, spec in nest_utils.flatten_with_joined_paths(action_spec):
        where = f"action_spec {path}".rstrip()
        if not tensor_spec.is_continuous(spec):
            raise ValueError(
                f"{where}: {algorithm} expects floats, got {spec}; train discrete "
                "actions with agents.DqnAgent or agents.DiscreteSacAgent."
            )
        if not actions.has_finite_range(spec):
            raise ValueError(
                f"{where}: {algorithm} expects a finite minimum and maximum, onto "
                f"which its actor scales actions, got {spec}; give the actions bounds "
                "in the environment's action_spec(), or train with "
                "agents.ReinforceAgent and an ActorDistributionNetwork of normal "
                "distributions."
            )
        if not of_one_value and not np.all(spec.minimum < spec.maximum):
            raise ValueError(
                f"{where}: {algorithm} expects minima below the maxima, got {spec}; "
                "leave out the parts of an action that cannot change."
            )
    return action_spec


def count_actions(
    action_spec: types.NestedTensorSpec, algorithm: str, remedy: str
) -> int:
    """Returns the number of values of one discrete action, which count from 0.

    Args:
      action_spec: The nest of tensor specs of the actions.
      algorithm: The algorithm's name, for the error.
      remedy: What to do instead, for the error.

    Raises:
      ValueError: The nest is not one scalar bounded integer spec with minimum 0.
    """
    specs = tf.nest.flatten(action_spec)
    if len(specs) != 1 or not tensor_spec.is_discrete(specs[0]):
        raise ValueError(
            f"action_spec: {algorithm} expects one scalar integer action, got "
            f"{action_spec}; {remedy}."
        )
    return policy_utils.get_num_actions_from_tensor_spec(specs[0])


def check_gives_distributions(
    actor_network: types.Network, algorithm: str, hint: str = ""
) -> None:
    """Raises a ValueError if the actor's outputs are actions, not distributions.

    Args:
      actor_network: A built `Network`.
      algorithm: The algorithm's name, for the error.
      hint: A further hint about the network to use.
    """
    for output in tf.nest.flatten(actor_network.create_variables()):
        if isinstance(output, tf.TensorSpec):
            raise ValueError(
                f"actor_network {actor_network.name!r}: {algorithm} expects "
                f"distributions of actions, got {output}; use an "
                f"ActorDistributionNetwork{hint}."
            )


def warn_of_unbounded_distributions(agent: type, actor_network: types.Network) -> None:
    """Warns, once for each class of agents, if actions may leave their bounds.

    Normal distributions that are not squashed can leave the bounds, even if their means
    are squashed.

    Args:
      agent: The class of an agent whose losses draw actions.
      actor_network: A built `Network` that predicts distributions of bounded actions.

    Warns:
      UserWarning: A distribution is a normal one.
    """
    if agent in _warned:
        return
    for spec in tf.nest.flatten(actor_network.create_variables()):
        if not is_normal(spec.parameters):
            continue
        _warned.add(agent)
        warn_user(
            f"{agent.__name__}: actor_network {actor_network.name!r} predicts a "
            f"{spec.parameters.type_.__name__}, whose samples leave the bounds of the "
            "actions. The policy clips its samples, but the losses do not: the "
            "critics compute the values of actions that are never taken, and the "
            "log-probabilities do not belong to the actions that are taken. Squash "
            "the samples: ActorDistributionNetwork(..., "
            "continuous_projection_net=tfrl.agents.sac.TanhNormalProjectionNetwork)."
        )
        return


def is_normal(parameters: Any) -> bool:
    """Whether a distribution's `Params` are of a normal, or of independent normals."""
    import tensorflow_probability as tfp

    tfd = tfp.distributions
    if parameters.type_ is tfd.Independent:
        return is_normal(parameters.params["distribution"])
    normals = tfd.Normal, tfd.MultivariateNormalDiag, tfd.MultivariateNormalTriL
    return issubclass(parameters.type_, normals)


def check_gives_discrete_values(critic_network: types.Network) -> None:
    """Raises a ValueError unless a critic's output is one distribution over atoms.

    Args:
      critic_network: A built `Network`.
    """
    from tfrl.distributions import discrete_valued
    from tfrl.distributions import utils as distribution_utils

    spec = critic_network.create_variables()
    if not (
        isinstance(spec, distribution_utils.DistributionSpecV2)
        and issubclass(
            spec.parameters.type_, discrete_valued.DiscreteValuedDistribution
        )
        and spec.sample_spec.shape.rank == 0
    ):
        raise ValueError(
            f"critic network {critic_network.name!r}: expected one "
            "DiscreteValuedDistribution for each pair of observation and action, got "
            f"{spec}; let the network end with a DiscreteValuedHead(vmin, vmax, "
            "num_atoms)."
        )


def check_not_recurrent(
    networks: Sequence[types.Network],
    algorithm: str,
    remedy: str = "use networks that see several frames at once",
) -> None:
    """Raises a NotImplementedError if one of the networks has a state."""
    for network in networks:
        if tf.nest.flatten(network.state_spec):
            raise NotImplementedError(
                f"network {network.name!r}: {algorithm} expects one without a state "
                f"here, got a recurrent one; {remedy}."
            )
