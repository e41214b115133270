"""A policy that keeps the noise of state-dependent exploration for several steps."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.distributions import sampling
from tfrl.policies import bases, tf_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import nest_utils, number_checks
from tfrl.utils.random_numbers import seeds


class StateDependentNoisePolicy(bases.WrapperPolicy):
    """Draws actions with noise that is a function of the state for several steps.

    The wrapped policy's distributions must come from a
    `StateDependentNoiseProjectionNetwork`: their noise is linear in features of the
    state, with a random matrix. This policy keeps the matrix (of standard normal
    numbers, which the network's current deviations multiply) until an episode ends or
    `sample_freq` steps have passed. So the actions are smooth over time, but each
    action still has the wrapped policy's distribution, which also gives the
    log-probabilities in `info`. Raffin, Kober and Stulp, "Smooth exploration for
    robotic reinforcement learning" (2021, arXiv:2005.05719), section 3.

    The policy state holds the matrix of each batch entry and the state of the wrapped
    policy. A call without a policy state draws a new matrix.
    """

    def __init__(
        self,
        wrapped_policy: tf_policy.TFPolicy,
        sample_freq: int | None = None,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          wrapped_policy: A policy with distributions of a
            `StateDependentNoiseProjectionNetwork`.
          sample_freq: The number of steps for which a matrix is kept; None keeps it for
            the whole episode.
          name: The module's name.
          seed: See `TFPolicy`.

        Raises:
          ValueError: The wrapped policy has other distributions, or `sample_freq` is
            not positive.
        """
        if sample_freq is not None:
            number_checks.check_integer(
                "sample_freq",
                sample_freq,
                1,
                remedy="None keeps the noise for the whole episode",
            )
        super().__init__(
            wrapped_policy,
            name,
            seed=seed,
            policy_state_spec={
                "wrapped": wrapped_policy.policy_state_spec,
                "noise": _noise_spec(wrapped_policy),
                "steps_left": tf.TensorSpec([], tf.int32),
            },
        )
        self._sample_freq = tf.int32.max if sample_freq is None else sample_freq

    def network_state(self, policy_state: Any) -> Any:
        """Returns the state without the noise; see `TFPolicy.network_state`."""
        return super().network_state(policy_state["wrapped"] if policy_state else ())

    def _get_initial_state(
        self, batch_size: int | tf.Tensor | None
    ) -> types.NestedTensor:
        zeros: Any = tf_policy.TFPolicy._get_initial_state(self, batch_size)
        # The wrapped policy may start from other numbers.
        return {**zeros, "wrapped": super()._get_initial_state(batch_size)}

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: Any
    ) -> policy_step.PolicyStep:
        step = self._wrapped_policy._greedy_action(time_step, policy_state["wrapped"])
        return step._replace(state={**policy_state, "wrapped": step.state})

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: Any
    ) -> policy_step.PolicyStep:
        step = self._wrapped_policy.distribution(time_step, policy_state["wrapped"])
        return step._replace(state={**policy_state, "wrapped": step.state})

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: Any,
        seed: tf.Tensor,
    ) -> policy_step.PolicyStep:
        step = self._distribution(time_step, policy_state)
        steps_left = tf.where(time_step.is_first(), 0, policy_state["steps_left"])
        is_over = tf.equal(steps_left, 0)
        kept = policy_state["noise"]
        noise = nest_utils.where(is_over, _draw_like(kept, seed), kept)
        drawn = [
            sampling.squash(_normal_of(distribution).perturb(matrix), distribution)
            for distribution, matrix in zip(
                tf.nest.flatten(step.action), tf.nest.flatten(noise), strict=True
            )
        ]
        state = {
            **step.state,
            "noise": noise,
            "steps_left": tf.where(is_over, self._sample_freq, steps_left) - 1,
        }
        return self._with_actions(step._replace(state=state), drawn, time_step)


def _draw_like(nest: types.NestedTensor, seed: tf.Tensor) -> types.NestedTensor:
    """Returns a nest of standard normal numbers with given shapes and dtypes."""
    flat = tf.nest.flatten(nest)
    drawn = [
        seeds.normal(own, tf.shape(tensor), tensor.dtype)
        for tensor, own in zip(flat, seeds.split_seed(seed, len(flat)), strict=True)
    ]
    return tf.nest.pack_sequence_as(nest, drawn)


def _normal_of(distribution: Any) -> Any:
    """Returns the normal distribution, without the squashing if there is any."""
    return getattr(distribution, "input_distribution", distribution)


def _noise_spec(policy: tf_policy.TFPolicy) -> types.NestedTensorSpec:
    """Returns the specs of the random matrices of a policy's actions."""
    from tfrl.distributions import state_dependent_normal

    with tf.init_scope():
        time_step = tensor_spec.zero_spec_nest(policy.time_step_spec, [1])
        step = policy.distribution(time_step, policy.get_initial_state(1))

    def spec(path_and_distribution: Any) -> Any:
        path, distribution = path_and_distribution
        normal = _normal_of(distribution)
        if not isinstance(normal, state_dependent_normal.StateDependentNormal):
            raise ValueError(
                f"wrapped_policy: the distribution of action {path}".rstrip()
                + f" is {distribution}, expected noise that depends on the state; make "
                "the actor network with continuous_projection_net="
                "StateDependentNoiseProjectionNetwork."
            )
        return tf.TensorSpec(normal.noise_shape, normal.dtype)

    named = nest_utils.flatten_with_joined_paths(step.action)
    return tf.nest.pack_sequence_as(step.action, list(map(spec, named)))
