"""A policy that acts greedily, or at random with probability epsilon."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfrl.policies import bases, greedy_policy, random_tf_policy, tf_policy, utils
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import nest_utils, number_checks
from tfrl.utils.optimization import schedules
from tfrl.utils.random_numbers import seeds

# Below this number of actions, a random float32 in [0, 1) picks every action with the
# same probability, to a relative error of 2^-7. For more actions integers are drawn.
_MAX_ACTIONS_BY_FLOAT = 2**16


class EpsilonGreedyPolicy(bases.WrapperPolicy):
    """Takes a random valid action with probability epsilon, else the greedy one.

    The choice is independent for each entry of the batch. The policy state is the state
    of the greedy policy. For one discrete choice, `distribution` returns the
    categorical distribution of the actions, whose `probs_parameter()` are their
    probabilities, `[B, num_actions]`. The log-probability in `info` is a sum: the
    log-probability that the greedy or the random policy gives the action, and `log(1 -
    epsilon)` or `log(epsilon)` for the choice between the two.
    """

    def __init__(
        self,
        policy: tf_policy.TFPolicy,
        epsilon: types.FloatOrSchedule,
        exploration_mask: Sequence[int] | None = None,
        info_fields_to_inherit_from_greedy: Sequence[str] = (),
        name: str | None = None,
        *,
        step: tf.Variable | None = None,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          policy: The policy whose greedy action is taken.
          epsilon: A number in [0, 1], a scalar tensor or variable, a callable that
            returns one of these, or a Keras schedule of `step`; see
            `tfrl.utils.optimization.schedules`.
          exploration_mask: Zeros and ones, `[num_actions]`. Exploration takes only
            actions marked 1.
          info_fields_to_inherit_from_greedy: Fields of `info` that are always taken
            from the greedy policy's `info`.
          name: The module's name.
          step: The variable that a schedule given as `epsilon` follows, such as an
            agent's `train_step_counter`.
          seed: See `TFPolicy`.

        Raises:
          ValueError: `epsilon` is a number outside [0, 1], or a schedule without
            `step`.
        """
        self._epsilon = _as_epsilon(epsilon, step)
        greedy = greedy_policy.GreedyPolicy(policy)
        super().__init__(policy, name, seed=seed, clip=policy._greedy_action_needs_clip)
        self._greedy_policy = greedy
        self._random_policy = random_tf_policy.RandomTFPolicy(
            policy.time_step_spec,
            policy.action_spec,
            info_spec=policy.info_spec,
            emit_log_probability=policy.emit_log_probability,
            observation_and_action_constraint_splitter=(
                policy.observation_and_action_constraint_splitter
            ),
            validate_args=policy.validate_args,
            stationary_mask=exploration_mask,
            seed=seed,
        )
        self._info_fields_to_inherit_from_greedy = tuple(
            info_fields_to_inherit_from_greedy
        )
        self._single_draw = (
            exploration_mask is None
            and policy.observation_and_action_constraint_splitter is None
            and not tf.nest.flatten(policy.info_spec)
            and _is_small_discrete(policy.action_spec)
        )

    def _is_pure_tensorflow(self) -> bool:
        return (
            type(self) is EpsilonGreedyPolicy
            and not callable(self._epsilon)
            and self._wrapped_policy._is_pure_tensorflow()
        )

    def _get_epsilon(self) -> tf.Tensor:
        """Returns epsilon now, float32; programs for TF-Agents call it, too."""
        return tf.cast(schedules.current_value(self._epsilon), tf.float32)

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        return self._greedy_policy._greedy_action(time_step, policy_state)

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedTensor,
        seed: tf.Tensor,
    ) -> policy_step.PolicyStep:
        if time_step.step_type.shape.rank not in (0, 1):
            raise ValueError(
                f"{self.name}: time_step has the outer shape "
                f"{time_step.step_type.shape}, expected at most one batch dimension "
                "[B]; act on one step at a time."
            )
        epsilon = self._get_epsilon()
        greedy = self._greedy_policy._action(
            time_step=time_step, policy_state=policy_state, seed=seed
        )
        if self._single_draw:
            explores, random_action = self._draw_once(time_step, epsilon, seed)
            action = tf.nest.map_structure(
                lambda g: tf.where(explores, random_action, g), greedy.action
            )
            return greedy._replace(action=action)
        action_seed, branch_seed = seeds.split_seed(seed, 2)
        explores = seeds.uniform(branch_seed, utils.outer_shape(time_step)) < epsilon
        random = self._random_policy._action(
            time_step=time_step, policy_state=(), seed=action_seed
        )
        return policy_step.PolicyStep(
            nest_utils.where(explores, random.action, greedy.action),
            greedy.state,
            self._info(explores, epsilon, greedy.info, random.info),
        )

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        specs = tf.nest.flatten(self._action_spec)
        if not (len(specs) == 1 and _is_one_choice(specs[0])):
            raise NotImplementedError(
                f"{type(self).__name__}.distribution: got action_spec "
                f"{self._action_spec}, expected one bounded integer spec of shape (). "
                "The parts of an action are not independent, since all explore or "
                "none; call action() instead."
            )
        from tfrl.distributions import shifted_categorical

        epsilon = self._get_epsilon()
        step = self._greedy_policy._greedy_action(time_step, policy_state)
        spec, (greedy,) = specs[0], tf.nest.flatten(step.action)
        num_actions = int(spec.maximum) - int(spec.minimum) + 1
        index = tf.cast(greedy, tf.int64) - int(spec.minimum)
        probs = (1.0 - epsilon) * tf.one_hot(index, num_actions)
        mask = self._random_policy._mask(time_step)
        if mask is None:
            probs += epsilon / num_actions
        else:
            valid = tf.cast(mask, tf.float32)
            number = tf.reduce_sum(valid, axis=-1, keepdims=True)
            probs += epsilon * tf.math.divide_no_nan(valid, number)
        distribution = shifted_categorical.over(spec, probs=probs)
        return step._replace(
            action=tf.nest.pack_sequence_as(self._action_spec, [distribution])
        )

    def _draw_once(
        self, time_step: ts.TimeStep, epsilon: tf.Tensor, seed: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Draws which entries explore, and random actions, `[B]`, in one random op."""
        (spec,) = tf.nest.flatten(self._action_spec)
        batch = utils.outer_shape(time_step)
        shape = [2, *batch] if isinstance(batch, tf.TensorShape) else [2, batch[0]]
        branch, choice = tf.unstack(seeds.uniform(seed, shape))
        num_actions = int(spec.maximum) - int(spec.minimum) + 1
        random_action = tf.cast(choice * num_actions, spec.dtype)
        if int(spec.minimum) != 0:
            random_action += tf.cast(int(spec.minimum), spec.dtype)
        return branch < epsilon, random_action

    def _info(
        self,
        explores: tf.Tensor,
        epsilon: tf.Tensor,
        greedy_info: types.NestedTensor,
        random_info: types.NestedTensor,
    ) -> types.NestedTensor:
        """Returns each entry's info from the policy that chose its action."""
        if not tf.nest.flatten(self._info_spec):
            return greedy_info
        info = nest_utils.where(explores, random_info, greedy_info)
        if self._emit_log_probability:
            branch = tf.where(explores, tf.math.log(epsilon), tf.math.log1p(-epsilon))
            log_probability = tf.nest.map_structure(
                lambda given_branch: given_branch + branch,
                policy_step.get_log_probability(info),
            )
            info = policy_step.set_log_probability(info, log_probability)
        inherited = {
            field: _field(greedy_info, field)
            for field in self._info_fields_to_inherit_from_greedy
        }
        if isinstance(info, dict):
            return {**info, **inherited}
        return info._replace(**inherited) if inherited else info


def _field(info: Any, name: str) -> Any:
    return info[name] if isinstance(info, dict) else getattr(info, name)


def _is_small_discrete(action_spec: Any) -> bool:
    specs = tf.nest.flatten(action_spec)
    return (
        len(specs) == 1
        and _is_one_choice(specs[0])
        and int(specs[0].maximum) - int(specs[0].minimum) < _MAX_ACTIONS_BY_FLOAT
    )


def _is_one_choice(spec: Any) -> bool:
    return (
        isinstance(spec, tensor_spec.BoundedTensorSpec)
        and spec.dtype.is_integer
        and spec.shape.rank == 0
    )


def _as_epsilon(epsilon: Any, step: tf.Variable | None) -> Any | Callable[[], Any]:
    number_checks.check_number(
        "epsilon", epsilon, 0, 1, remedy="0 never explores, 1 always does"
    )
    return schedules.follow("epsilon", epsilon, step)
