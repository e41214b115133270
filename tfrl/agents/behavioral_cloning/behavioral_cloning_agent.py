"""Behavioural cloning: learns to predict the recorded actions from the observations.

For each frame (s, a) the loss is

    discrete actions, logits:           -log softmax(f(s))[a]
    a network of distributions pi:      -log pi(a|s)
    continuous actions, plain outputs:  the mean over the action of (f(s) - a)^2

or, with `loss="mse"`, the squared error of pi's mode for continuous actions. The first
logit belongs to the smallest action, also in a `Categorical`.

Bain and Sammut, "A framework for behavioural cloning" (1995); Pomerleau, "ALVINN"
(1988). Rewards are not used.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import tensorflow as tf

from tfrl import losses
from tfrl.agents import (
    checks,
    data_converter,
    normalization,
    options,
    tf_agent,
)
from tfrl.distributions import recorded
from tfrl.networks import network as network_lib
from tfrl.networks import utils as network_utils
from tfrl.policies import (
    actor_policy,
    epsilon_greedy_policy,
    greedy_policy,
    q_policy,
    tf_policy,
)
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.typing import types
from tfrl.utils import actions, nest_utils, summaries
from tfrl.utils.optimization import optimizers
from tfrl.utils.tensor_normalizer import TensorNormalizer


class BehavioralCloningLossInfo(NamedTuple):
    """The losses of the frames, `[B]` or `[B, T]`; 0 for boundaries."""

    loss: tf.Tensor


class BehavioralCloningAgent(tf_agent.TFAgent):
    """An agent that imitates the policy of its experience.

    Boundary frames, from the end of an episode to the start of the next, are masked.
    They count in the mean with a loss of 0. Mask padding with `weights`.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        cloning_network: types.Network | types.Layer,
        optimizer: types.Optimizer | None,
        num_outer_dims: Literal[1, 2] = 1,
        epsilon_greedy: float = 0.1,
        loss_fn: Callable[..., tf.Tensor] | None = None,
        gradient_clipping: float | None = None,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        name: str | None = None,
        *,
        loss: Literal["nll", "mse"] | None = None,
        seed: int | None = None,
        observation_normalizer: TensorNormalizer | None = None,
    ) -> None:
        """Builds the policies.

        `AgentOptions` explains the arguments that are not listed here.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded specs.
          cloning_network: A `Network` (or Keras layer) that maps observations to the
            logits of one discrete action, such as a `QNetwork`; to actions, such as an
            `ActorNetwork`; or to their distributions, such as an
            `ActorDistributionNetwork`.
          optimizer: The optimizer; None for an agent that never trains.
          num_outer_dims: 1 for experience `[B, ...]`, 2 for sequences `[B, T, ...]`. A
            recurrent network starts each of them from its initial state, so that it
            learns no memory from single frames.
          epsilon_greedy: The probability of a random action of `collect_policy`, if the
            network gives logits.
          loss_fn: A function that returns a loss for each frame, `[B]` or `[B, T]`;
            by default the losses above, for one action spec or for distributions of
            several. It is called with the network's output and the nest of actions; or,
            if it takes an argument `training`, as TF-Agents does:
            `loss_fn(experience, training=training)`, with a `Trajectory`, to whose
            observations it applies `cloning_network`.
          gradient_clipping: The largest norm of each variable's gradient.
          loss: The loss to use if `loss_fn` is None, for one action spec: "nll", the
            negative log-likelihood (for logits, the cross-entropy), or "mse", the mean
            squared error of continuous actions or of a distribution's mode. None means
            "nll" if the network gives logits or distributions, and "mse" otherwise.

        Raises:
          ValueError: There are several actions, but neither a `loss_fn` nor
            distributions; `loss` is given with a `loss_fn`, or does not fit the
            network's output; or this output does not fit the actions.

        Warns:
          UserWarning: The network is recurrent, and `num_outer_dims` is 1.
        """
        checks.check_time_step_spec(time_step_spec)
        checks.check_gradient_clipping(gradient_clipping)
        agent = options.AgentOptions(
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
            seed=seed,
            observation_normalizer=observation_normalizer,
        )
        time_step_spec = tensor_spec.from_spec(time_step_spec)
        action_spec = tensor_spec.from_spec(action_spec)
        specs = tf.nest.flatten(action_spec)
        (cloning_network,) = normalization.normalized_networks(
            observation_normalizer, time_step_spec.observation, cloning_network
        )
        network = network_lib.as_network(cloning_network, time_step_spec.observation)
        output = network.create_variables(time_step_spec.observation)
        if num_outer_dims == 1 and tf.nest.flatten(network.state_spec):
            checks.warn_user(
                f"cloning_network {network.name!r}: with num_outer_dims=1 a recurrent "
                "network is trained on single frames, each from its initial state, so "
                "that it learns no memory; give num_outer_dims=2, and train on "
                "sequences."
            )
        self._gives_distributions = not all(
            isinstance(leaf, tf.TensorSpec) for leaf in tf.nest.flatten(output)
        )
        if loss_fn is None and len(specs) != 1 and not self._gives_distributions:
            raise ValueError(
                f"loss_fn: got None for the action_spec {action_spec}, expected a "
                "function, since several actions have a default loss only where the "
                "network gives their distributions; give one that adds up the losses "
                "of the parts, or an ActorDistributionNetwork."
            )
        self._gives_logits = (
            not self._gives_distributions
            and len(specs) == 1
            and tensor_spec.is_discrete(specs[0])
        )
        self._is_squared = self._check_loss(loss, loss_fn, specs)
        if self._gives_logits:
            _check_logits(specs[0], output, network)
        policy, collect_policy = self._make_policies(
            time_step_spec, action_spec, network, epsilon_greedy, seed
        )
        super().__init__(
            time_step_spec,
            action_spec,
            policy,
            collect_policy,
            train_sequence_length=None,
            num_outer_dims=num_outer_dims,
            **agent.of_base(),
        )
        self._cloning_network = network
        self._set_only_part(
            [network], optimizer, optimizers.each_to_norm(gradient_clipping)
        )
        self._loss_fn: Callable[..., tf.Tensor] = loss_fn or self._default_loss
        self._calls_network = not _takes_training(self._loss_fn)
        self._as_trajectory = data_converter.AsTrajectory(
            self.data_context, num_outer_dims=num_outer_dims
        )

    def _check_loss(
        self, loss: str | None, loss_fn: Any, specs: list[tensor_spec.BoundedTensorSpec]
    ) -> bool:
        """Returns whether the default loss is the squared error."""
        gives_likelihoods = self._gives_distributions or self._gives_logits
        if loss is None:
            return not gives_likelihoods
        if loss_fn is not None:
            raise ValueError(
                f"loss: got {loss!r} and a loss_fn, expected one of them; leave loss "
                "out."
            )
        has_one_force = len(specs) == 1 and not tensor_spec.is_discrete(specs[0])
        allowed = ["nll"] * gives_likelihoods + ["mse"] * has_one_force
        if loss not in allowed:
            raise ValueError(
                f"loss: got {loss!r}, expected one of {allowed} for actions "
                f"{specs} and this network; 'nll' needs logits or a distribution, "
                "such as an ActorDistributionNetwork's, and 'mse' continuous actions."
            )
        return loss == "mse"

    def _make_policies(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: Any,
        network: Any,
        epsilon_greedy: float,
        seed: int | None,
    ) -> tuple[tf_policy.TFPolicy, tf_policy.TFPolicy]:
        """Returns the greedy policy and the exploring policy."""
        policy: tf_policy.TFPolicy
        if self._gives_logits:
            policy = q_policy.QPolicy(
                time_step_spec,
                action_spec,
                network,
                validate_action_spec_and_network=False,
                seed=seed,
            )
            exploring: tf_policy.TFPolicy = epsilon_greedy_policy.EpsilonGreedyPolicy(
                policy, epsilon_greedy, seed=seed
            )
        else:
            counts_from_zero = all(
                np.all(spec.minimum == 0)
                for spec in tf.nest.flatten(action_spec)
                if tensor_spec.is_discrete(spec)
            )
            kind = actor_policy.ActorPolicy if counts_from_zero else _ShiftedPolicy
            policy = exploring = kind(
                time_step_spec, action_spec, actor_network=network, seed=seed
            )
        return greedy_policy.GreedyPolicy(policy), exploring

    @property
    def cloning_network(self) -> types.Network:
        """The network that is trained. It normalizes the observations itself."""
        return self._cloning_network

    def _loss(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf_agent.LossInfo:
        frames: trajectory.Trajectory = self._as_trajectory(experience)
        # Masked before the loss, so that no gradient is NaN.
        boundary = frames.is_boundary()
        nothing = tf.nest.map_structure(_any_action, self.action_spec, frames.action)
        frames = frames._replace(
            action=nest_utils.where(boundary, nothing, frames.action)
        )
        if self._calls_network:
            output, _ = self._cloning_network(
                frames.observation, step_type=frames.step_type, training=training
            )
            loss = self._loss_fn(output, frames.action)
        else:
            loss = self._loss_fn(frames, training=training)
        loss = tf.convert_to_tensor(loss)
        if loss.shape.rank != frames.step_type.shape.rank:
            raise ValueError(
                "loss_fn: expected a loss for each frame, shape "
                f"{frames.step_type.shape}, got shape {loss.shape}; reduce the "
                "dimensions of the action in it, and no others."
            )
        loss = tf.where(boundary, 0.0, tf.cast(loss, tf.float32))
        total = losses.aggregate_losses(
            loss, weights, regularization_loss=self._cloning_network.losses
        ).total_loss
        if self.summaries_enabled:
            summaries.summarize_scalar_dict(
                {"loss": total}, step=self.train_step_counter
            )
        return tf_agent.LossInfo(total, BehavioralCloningLossInfo(loss))

    def _default_loss(self, output: Any, action: Any) -> tf.Tensor:
        """Returns the loss of each frame, `[B]` or `[B, T]`."""
        if self._gives_distributions and not self._is_squared:
            output = tf.nest.map_structure(_shifted, output, self.action_spec)
            return -recorded.log_probability(output, action, self.action_spec)
        (spec,) = tf.nest.flatten(self.action_spec)
        (action,), (output,) = tf.nest.flatten(action), tf.nest.flatten(output)
        if self._gives_logits:
            return tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=action - tf.cast(spec.minimum, action.dtype), logits=output
            )
        if self._gives_distributions:
            output = output.mode()
        error = tf.math.squared_difference(tf.cast(action, output.dtype), output)
        inner = list(range(error.shape.rank - spec.shape.rank, error.shape.rank))
        return tf.reduce_mean(error, axis=inner) if inner else error


class _ShiftedPolicy(actor_policy.ActorPolicy):
    """Shifts each `Categorical` of its network to count from the smallest action."""

    def _apply_actor_network(self, *args: Any, **kwargs: Any) -> Any:
        output, state = super()._apply_actor_network(*args, **kwargs)
        return tf.nest.map_structure(_shifted, output, self.action_spec), state


def _shifted(output: Any, spec: tensor_spec.BoundedTensorSpec) -> Any:
    """Turns a `Categorical` over indices of actions into one over the actions."""
    import tensorflow_probability as tfp

    if type(output) is not tfp.distributions.Categorical or np.all(spec.minimum == 0):
        return output
    from tfrl.distributions import shifted_categorical

    return shifted_categorical.ShiftedCategorical(
        logits=output.logits_parameter(), dtype=output.dtype, shift=spec.minimum
    )


def _any_action(spec: tensor_spec.BoundedTensorSpec, action: tf.Tensor) -> tf.Tensor:
    """Returns actions of the shape of `action` that have a likelihood."""
    return tf.zeros_like(action) + tf.cast(actions.nearest_to_zero(spec), action.dtype)


def _check_logits(
    spec: tensor_spec.BoundedTensorSpec, output: Any, network: Any
) -> None:
    """Raises a ValueError unless a network gives one logit for each action."""
    q_policy.check_scalar(spec)
    num_actions = int(spec.maximum) - int(spec.minimum) + 1
    network_utils.check_single_floating_network_output(
        output, (num_actions,), str(network)
    )


def _takes_training(loss_fn: Callable[..., Any]) -> bool:
    """Returns whether a loss function is to be called as TF-Agents calls it."""
    return "training" in inspect.signature(loss_fn).parameters
