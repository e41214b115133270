"""The policy of QT-Opt, which searches for the action with the greatest value.

The cross-entropy method draws `N` actions from a normal distribution, fits the
distribution to the best `M` of them, and begins again (Rubinstein and Kroese, "The
cross-entropy method", 2004; for Q-networks Kalashnikov et al., "QT-Opt: scalable deep
reinforcement learning for vision-based robotic manipulation", 2018, arXiv:1806.10293,
section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.networks import network
from tfrl.networks import utils as network_utils
from tfrl.policies import tf_policy
from tfrl.policies.acting import traced_action, validation
from tfrl.policies.samplers import qtopt_cem_actions_sampler as sampling
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import nest_utils, number_checks
from tfrl.utils.random_numbers import seeds

# The seed of the greedy action.
_GREEDY = (0, 0)


class CEMPolicy(tf_policy.TFPolicy):
    """Takes the best action of the last iteration of the cross-entropy method.

    The seed of `action` decides the samples. All rows of a batch get the same noise, so
    the action of a row depends on its observation and the seed alone. The greedy
    action, and so `distribution`, uses one fixed seed: it is a function of the
    observation. In all shapes `B` is the batch size, `N` the number of samples, `M` the
    number of elites and `A` the size of an action.
    """

    # The sampler clips.
    _greedy_action_needs_clip = False

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        q_network: network.Network,
        sampler: sampling.ActionsSampler | None,
        init_mean: types.NestedArray | None = None,
        init_var: types.NestedArray | None = None,
        actor_policy: tf_policy.TFPolicy | None = None,
        minimal_var: float = 0.0001,
        info_spec: types.NestedTensorSpec = (),
        num_samples: int = 32,
        num_elites: int = 4,
        num_iterations: int = 32,
        emit_log_probability: bool = False,
        preprocess_state_action: bool = True,
        training: bool = False,
        weights: types.NestedArray | None = None,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded specs.
          q_network: A network, or Keras layer or model, that maps pairs of observations
            and actions to values `[B]`. It may have no state.
          sampler: Draws the actions, and refits their distribution.
          init_mean: The first mean, a nest of arrays or lists `[A]`; the middle of the
            bounds if None.
          init_var: The first variance, like `init_mean`; the square of half the range
            if None.
          actor_policy: A policy whose action is taken where its value is at least that
            of the best sample, or None.
          minimal_var: The least variance of the distribution.
          info_spec: A nest of specs of `PolicyStep.info`. A float32 entry "target_q" of
            a dictionary gets the value of the action; the others are zeros.
          num_samples: The number of samples in each iteration, `N`.
          num_elites: The number of samples to which the distribution is fitted, `M`.
          num_iterations: The number of iterations.
          emit_log_probability: See `TFPolicy`. It is 0.
          preprocess_state_action: Whether each observation is repeated for its samples,
            so that the network gets `[B * N, ...]`. If not, it gets observations `[B,
            ...]` and actions `[B, N, A]`, and returns `[B, N]` or `[B * N]`.
          training: Whether the network is applied as in training.
          weights: Not used; TF-Agents has this argument.
          name: The module's name.
          seed: See `TFPolicy`.

        Raises:
          ValueError: The network's output is not one value, or a number is out of
            range.
          NotImplementedError: The network has a state.
        """
        del weights
        validation.check_time_step_spec(time_step_spec)
        action_spec = tensor_spec.from_spec(action_spec)
        inputs = tensor_spec.from_spec(time_step_spec.observation), action_spec
        q_network = network.as_network(q_network, inputs)
        network_utils.check_single_floating_network_output(
            q_network.create_variables(), (), str(q_network)
        )
        if tf.nest.flatten(q_network.state_spec):
            raise NotImplementedError(
                f"q_network {q_network.name!r}: expected one without a state, got a "
                "recurrent one; use a network that sees several frames at once."
            )
        number_checks.check_sizes(
            num_samples=num_samples,
            num_elites=num_elites,
            num_iterations=num_iterations,
        )
        super().__init__(
            time_step_spec,
            action_spec,
            info_spec=info_spec,
            clip=False,
            emit_log_probability=emit_log_probability,
            name=name,
            seed=seed,
        )
        self._q_network = q_network
        self._actor_policy = actor_policy
        self._actions_sampler = sampler
        self._set_untracked("_init_mean", init_mean)
        self._set_untracked("_init_var", init_var)
        self._minimal_var = minimal_var
        self._num_samples = num_samples
        self._num_elites = num_elites
        self._num_iterations = num_iterations
        self._preprocess_state_action = preprocess_state_action
        self._training = training

    def _variables(self) -> Sequence[Any]:
        others = () if self._actor_policy is None else self._actor_policy.variables()
        return [*self._q_network.variables, *others]

    def _is_pure_tensorflow(self) -> bool:
        return (
            type(self) is CEMPolicy
            and self._actor_policy is None
            and self._actions_sampler is not None
            and self._actions_sampler.is_pure_tensorflow()
            and traced_action.has_known_layers(self._q_network)
        )

    def actor_func(
        self,
        observation: types.NestedTensor,
        step_type: tf.Tensor | None = None,
        policy_state: types.NestedTensor = (),
        *,
        seed: int | tf.Tensor = _GREEDY,
    ) -> tuple[types.NestedTensor, tf.Tensor, types.NestedTensor]:
        """Searches for the actions with the greatest values.

        Args:
          observation: The observations, `[B, ...]`.
          step_type: The step types `[B]`; `()` or None for none.
          policy_state: The policy state, which is `()`.
          seed: An integer tensor `[2]`, or an integer.

        Returns:
          The elites of the last iteration, a nest of `[B, M, A]`, the best first; their
          values, `[B, M]`; and the policy state.

        Raises:
          ValueError: There are more elites than samples.
        """
        sampler = self._actions_sampler
        assert sampler is not None
        if self._num_elites > self._num_samples:
            raise ValueError(
                f"num_elites: expected at most num_samples, {self._num_samples}, got "
                f"{self._num_elites}; draw more samples, or keep fewer."
            )
        batch_size = nest_utils.get_outer_shape(
            observation, self._time_step_spec.observation
        )[0]

        def iterate(seed: Any, mean: Any, var: Any, *_: Any) -> tuple[Any, ...]:
            var = tf.nest.map_structure(lambda v: tf.maximum(v, self._minimal_var), var)
            actions = sampler.sample_batch_and_clip(
                self._num_samples, mean, var, observation, seed=seed
            )
            values, _ = self._score(observation, actions, step_type, policy_state)
            best, index = tf.math.top_k(values, self._num_elites)
            floats = tf.nest.map_structure(lambda a: tf.cast(a, tf.float32), actions)
            elites = tf.nest.map_structure(
                lambda a: tf.gather(a, index, batch_dims=1), actions
            )
            return *sampler.refit_distribution_to(index, floats), elites, best

        outer = [batch_size, self._num_elites]
        elites = tensor_spec.zero_spec_nest(self._action_spec, outer)
        state = (*self._initial_params(batch_size), elites, tf.zeros(outer))
        each = sampling.folded(
            lambda x: tf.random.split(x, self._num_iterations, seeds.ALGORITHM),
            tf.cast(seeds.as_seed(seed), tf.int64),
        )
        if tf.is_tensor(each):
            _, state = tf.while_loop(
                lambda i, _: i < self._num_iterations,
                lambda i, state: (i + 1, iterate(each[i], *state)),
                (tf.constant(0), state),
                maximum_iterations=self._num_iterations,
            )
        else:  # No loop in the graph: the noise of each iteration is a constant.
            for own in each:
                state = iterate(own, *state)
        return *state[2:], policy_state

    def _initial_params(self, batch_size: int | tf.Tensor) -> tuple[Any, Any]:
        """Returns the first mean and variance, nests of `[B, A]`."""

        def batch(spec: Any, value: Any) -> tf.Tensor:
            value = tf.constant(np.asarray(value, np.float32))
            return tf.broadcast_to(value, [batch_size, *spec.shape])

        def of(given: Any, default: Callable[[Any], Any]) -> Any:
            if given is None:
                given = tf.nest.map_structure(default, self._action_spec)
            return nest_utils.map_structure_up_to(
                self._action_spec, batch, self._action_spec, given
            )

        return (
            of(self._init_mean, lambda spec: (spec.minimum + spec.maximum) / 2.0),
            of(self._init_var, lambda spec: ((spec.maximum - spec.minimum) / 2.0) ** 2),
        )

    def compute_target_q(
        self,
        observation: Any,
        action: Any,
        step_type: Any = None,
        policy_state: Any = (),
    ) -> tuple[tf.Tensor, Any]:
        """Returns the values of actions, `[B]`, and the policy state.

        Args:
          observation: The observations, `[B, ...]`.
          action: The nest of actions, `[B, A]`.
          step_type: The step types `[B]`, or None.
          policy_state: The policy state, which is `()`.
        """
        return self._q_network(
            (observation, action),
            step_type=step_type,
            network_state=policy_state,
            training=self._training,
        )

    def _score(
        self,
        observation: Any,
        sample_actions: Any,
        step_type: Any = None,
        policy_state: Any = (),
    ) -> tuple[tf.Tensor, Any]:
        """Returns the values of samples, `[B, N]`, and the policy state."""
        step_type = None if isinstance(step_type, tuple) else step_type
        number = self._num_samples
        if self._preprocess_state_action:
            sample_actions = tf.nest.map_structure(
                lambda a: tf.reshape(a, [-1, *a.shape[2:]]), sample_actions
            )
            observation, step_type = tf.nest.map_structure(
                lambda x: x if x is None else tf.repeat(x, number, axis=0),
                (observation, step_type),
            )
        values, state = self.compute_target_q(
            observation, sample_actions, step_type, policy_state
        )
        return tf.reshape(values, [-1, number]), state

    def _act_by(
        self, time_step: ts.TimeStep, policy_state: Any, seed: Any
    ) -> policy_step.PolicyStep:
        """Returns the best action that a search with this seed finds."""
        is_single = time_step.step_type.shape.rank == 0
        step = time_step
        if is_single:
            step = tf.nest.map_structure(lambda x: x[tf.newaxis], time_step)
        elites, values, _ = self.actor_func(
            step.observation, step.step_type, policy_state, seed=seed
        )
        action, value = tf.nest.map_structure(lambda x: x[:, 0], (elites, values))
        if self._actor_policy is not None:
            other = self._actor_policy.action(step, seed=seed).action
            rival, _ = self.compute_target_q(step.observation, other, step.step_type)
            action = nest_utils.where(value > rival, action, other)
            value = tf.maximum(value, rival)
        outer = tf.shape(value)
        info = tensor_spec.zero_spec_nest(self._info_spec, outer)
        if isinstance(info, dict) and "target_q" in info:
            info = {**info, "target_q": value}
        if is_single:
            action, info = tf.nest.map_structure(lambda x: x[0], (action, info))
        return policy_step.PolicyStep(action, policy_state, info)

    def _action(
        self, time_step: ts.TimeStep, policy_state: Any, seed: tf.Tensor
    ) -> policy_step.PolicyStep:
        return self._act_by(time_step, policy_state, seed)

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: Any
    ) -> policy_step.PolicyStep:
        return self._act_by(time_step, policy_state, _GREEDY)

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: Any
    ) -> policy_step.PolicyStep:
        from tfrl.policies.acting import deterministic

        step = self._act_by(time_step, policy_state, _GREEDY)
        return step._replace(
            action=tf.nest.map_structure(
                deterministic.DeterministicWithLogProb, step.action
            )
        )
