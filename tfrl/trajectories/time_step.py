"""`TimeStep`, the result of an environment's step, and its constructors.

The steps of an episode are FIRST, MID, ..., MID, LAST. A termination is a LAST step
with discount 0. A truncation (a time limit) is a LAST step that keeps its discount, so
that agents bootstrap from its observation. Importing this module does not import
TensorFlow. The constructors make NumPy arrays unless the observation is of tensors.
"""

from __future__ import annotations

import pprint
import sys
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self

import numpy as np
import tree
from typing_extensions import TypeVar

from tfrl.specs import array_spec, bounds
from tfrl.typing import types

# The types of fields, for type checkers.
StepTypeT = TypeVar("StepTypeT", bound=types.NestedValue, default=Any, covariant=True)
RewardT = TypeVar("RewardT", bound=types.NestedValue, default=Any, covariant=True)
DiscountT = TypeVar("DiscountT", bound=types.NestedValue, default=Any, covariant=True)
ObservationT = TypeVar("ObservationT", default=Any, covariant=True)


def _constant(value: int) -> np.ndarray:
    constant = np.asarray(value, dtype=np.int32)
    # Every time step of a NumPy environment shares these three arrays.
    constant.setflags(write=False)
    return constant


class StepType:
    """The possible positions of a `TimeStep` in its episode, int32 arrays `[]`.

    `StepType(1)` returns the constant that equals 1, MID. Values other than 0, 1 and 2
    raise a ValueError.
    """

    FIRST = _constant(0)
    MID = _constant(1)
    LAST = _constant(2)

    def __new__(cls, value: Any) -> Any:
        """Returns the constant that equals `value`.

        Raises:
          ValueError: If there is no such constant.
        """
        for constant in (cls.FIRST, cls.MID, cls.LAST):
            if value == constant:
                return constant
        raise ValueError(
            f"StepType: got {value!r}, expected 0 (FIRST), 1 (MID) or 2 (LAST); use "
            "one of the constants, such as StepType.FIRST."
        )


class _Fields(NamedTuple, Generic[StepTypeT, RewardT, DiscountT, ObservationT]):
    step_type: StepTypeT
    reward: RewardT
    discount: DiscountT
    observation: ObservationT


class TimeStep(_Fields[StepTypeT, RewardT, DiscountT, ObservationT]):
    """One step of an environment, in the field order of dm_env.

    Annotations can name the types of the fields, in their order. Types that are not
    named are `Any`, because a field may hold tensors, arrays or specs: `TimeStep`, or
    `TimeStep[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]`.

    Attributes:
      step_type: Int32 values of `StepType`, `[]` or `[B]`.
      reward: The reward for the action that led here, float32; 0 at a FIRST step.
      discount: Float32 in [0, 1]; 0 at a termination, so that nothing is bootstrapped.
      observation: A nest of arrays or tensors.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # Arguments may have other types than the fields.

        def __new__(  # noqa: D102
            cls,
            step_type: types.NestedValue,
            reward: types.NestedValue,
            discount: types.NestedValue,
            observation: Any,
        ) -> Self: ...

        def _replace(
            self,
            *,
            step_type: types.NestedValue = ...,
            reward: types.NestedValue = ...,
            discount: types.NestedValue = ...,
            observation: Any = ...,
        ) -> Self: ...

    def __repr__(self) -> str:
        return fields_repr(self)

    def is_first(self) -> Any:
        """Whether each step is FIRST, as a bool tensor or NumPy bool."""
        return equals_step_type(self.step_type, StepType.FIRST)

    def is_mid(self) -> Any:
        """Whether each step is MID, as a bool tensor or NumPy bool."""
        return equals_step_type(self.step_type, StepType.MID)

    def is_last(self) -> Any:
        """Whether each step is LAST, as a bool tensor or NumPy bool."""
        return equals_step_type(self.step_type, StepType.LAST)


def restart(
    observation: Any, batch_size: Any = None, reward_spec: Any = None
) -> TimeStep:
    """Returns the FIRST step of an episode, with reward 0 and discount 1.

    Args:
      observation: A nest of arrays or of tensors.
      batch_size: The size of the outer dimension, a number or integer tensor; or a
        shape of several outer dimensions. None makes an unbatched step.
      reward_spec: The nest of specs of the reward; a float32 scalar if None.
    """
    outer_shape = _outer_shape(batch_size)
    if not _holds_tensors(observation):
        return TimeStep(
            _fill_array(outer_shape, StepType.FIRST),
            _map_reward_spec(
                lambda shape, dtype: np.zeros((*outer_shape, *shape), dtype),
                reward_spec,
            ),
            np.ones(outer_shape, np.float32),
            observation,
        )

    import tensorflow as tf

    return TimeStep(
        tf.fill(outer_shape, tf.constant(StepType.FIRST)),
        _map_reward_spec(
            lambda shape, dtype: tf.zeros(_join(outer_shape, shape), dtype),
            reward_spec,
        ),
        tf.ones(outer_shape, tf.float32),
        observation,
    )


def new_round(time_step: TimeStep) -> TimeStep:
    """Returns the FIRST step of a bandit's next round.

    Args:
      time_step: A time step of a bandit, of tensors or of arrays. Its observation is
        the observation of the next round, and its reward belongs to the last one.
    """
    if _is_tensor(time_step.step_type):
        import tensorflow as library
    else:
        library = np
    return TimeStep(
        library.zeros_like(time_step.step_type),
        tree.map_structure(library.zeros_like, time_step.reward),
        library.ones_like(time_step.discount),
        time_step.observation,
    )


def transition(
    observation: Any,
    reward: types.NestedValue,
    discount: types.NestedValue = 1.0,
    outer_dims: Any = None,
) -> TimeStep:
    """Returns a MID step.

    Args:
      observation: A nest of arrays or of tensors.
      reward: A nest of numbers, arrays or tensors; numbers and NumPy arrays become
        float32.
      discount: A number or `[B]`. With tensors a scalar is broadcast to the outer
        shape; with arrays it does not change.
      outer_dims: The outer shape. None takes the first dimension of the first reward,
        or `[]` if that reward is a scalar. Give `()` for an unbatched vector reward.

    Raises:
      ValueError: Reward or discount holds something that is not a number, or is not
        finite in float32.
    """
    return _step(StepType.MID, observation, reward, discount, outer_dims)


def termination(
    observation: Any, reward: types.NestedValue, outer_dims: Any = None
) -> TimeStep:
    """Returns a LAST step with discount 0, at which the episode terminates.

    For arguments and errors see `transition`.
    """
    last = _step(StepType.LAST, observation, reward, 0.0, outer_dims)
    if _is_tensor(last.discount):
        return last
    return last._replace(discount=np.zeros(last.step_type.shape, np.float32))


def truncation(
    observation: Any,
    reward: types.NestedValue,
    discount: types.NestedValue = 1.0,
    outer_dims: Any = None,
) -> TimeStep:
    """Returns a LAST step that keeps `discount`, as at a time limit.

    Agents bootstrap from `observation`. For arguments and errors see `transition`.
    """
    return _step(StepType.LAST, observation, reward, discount, outer_dims)


def time_step_spec(observation_spec: Any = None, reward_spec: Any = None) -> TimeStep:
    """Returns the `TimeStep` of specs for an environment's observations and rewards.

    Args:
      observation_spec: A nest of array specs or of tensor specs. If None, all four
        fields of the result are `()`.
      reward_spec: A nest of specs of the same kind; a float32 scalar if None.

    Raises:
      TypeError: One argument holds array specs and the other tensor specs.
    """
    if observation_spec is None:
        return TimeStep(step_type=(), reward=(), discount=(), observation=())
    use_tensors = _holds_tensor_specs(observation_spec, reward_spec)
    scalar: Any = array_spec.ArraySpec
    bounded: Any = array_spec.BoundedArraySpec
    if use_tensors:
        from tfrl.specs import tensor_spec

        scalar = tensor_spec.TensorSpec
        bounded = tensor_spec.BoundedTensorSpec
    if reward_spec is None:
        reward_spec = scalar((), np.float32, name="reward")
    return TimeStep(
        step_type=scalar((), np.int32, name="step_type"),
        reward=reward_spec,
        discount=bounded((), np.float32, minimum=0.0, maximum=1.0, name="discount"),
        observation=observation_spec,
    )


def fields_repr(value: Any) -> str:
    """Returns a namedtuple's fields with their names, one or more lines for each."""
    fields = pprint.pformat(value._asdict(), sort_dicts=False)
    return f"{type(value).__name__}(\n{fields})"


def equals_step_type(step_type: Any, constant: np.ndarray) -> Any:
    """Returns `step_type == constant`, a tensor for a tensor, else a NumPy bool."""
    if _is_tensor(step_type):
        from tfrl.compilation import accelerators

        return accelerators.equal(step_type, constant)
    return np.equal(step_type, constant)


def _step(
    step_type: np.ndarray, observation: Any, reward: Any, discount: Any, outer_dims: Any
) -> TimeStep:
    """Returns a MID or LAST step, of tensors if the observation consists of tensors."""
    if _holds_tensors(observation):
        return _tensor_step(step_type, observation, reward, discount, outer_dims)
    # Most rewards are one number; a separate path for them saves time at every step.
    if isinstance(reward, (float, np.ndarray, np.generic)):
        first_reward = reward = _as_array(reward, "reward")
    else:
        reward = tree.map_structure(lambda r: _as_array(r, "reward"), reward)
        first_reward = tree.flatten(reward)[0]
    outer_shape = (
        first_reward.shape[:1] if outer_dims is None else _outer_shape(outer_dims)
    )
    return TimeStep(
        _fill_array(outer_shape, step_type),
        reward,
        _as_array(discount, "discount"),
        observation,
    )


def _tensor_step(
    step_type: np.ndarray, observation: Any, reward: Any, discount: Any, outer_dims: Any
) -> TimeStep:
    import tensorflow as tf

    reward = tf.nest.map_structure(
        lambda r: r if tf.is_tensor(r) else tf.constant(r, tf.float32), reward
    )
    if outer_dims is None:
        first_reward = tf.nest.flatten(reward)[0]
        static = first_reward.shape[:1]
        # If the shape is static, the result's shape should be static, too.
        outer_dims = (
            static.as_list()
            if static.is_fully_defined()
            else tf.shape(first_reward)[:1]
        )
    outer_shape = _outer_shape(outer_dims)
    discount = tf.convert_to_tensor(discount, dtype=tf.float32)
    if discount.shape.rank == 0:
        discount = tf.fill(outer_shape, discount)
    step_types = tf.fill(outer_shape, tf.constant(step_type))
    return TimeStep(step_types, reward, discount, observation)


def _as_array(value: Any, field: str) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"time_step.{field}: got {value!r} of type {type(value).__name__}, "
            f"expected finite numbers; give the environment's own {field}."
        )
    if array.dtype.kind == "f" and not bounds.is_finite_in_float32(array):
        raise ValueError(
            f"time_step.{field}: got {bounds.describe_not_finite_in_float32(array)}, "
            f"expected finite numbers; give the environment's own {field}."
        )
    return array.astype(np.float32, copy=False)


def _fill_array(outer_shape: Any, step_type: np.ndarray) -> np.ndarray:
    # Unbatched steps share the constant, so that the hot path makes no array.
    return np.full(outer_shape, step_type) if len(outer_shape) else step_type


def _map_reward_spec(make: Any, reward_spec: Any) -> Any:
    """Applies `make(shape, dtype)` to each reward spec; None is a float32 scalar."""
    if reward_spec is None:
        return make((), np.float32)
    return tree.map_structure(lambda s: make(tuple(s.shape), _np_dtype(s)), reward_spec)


def _np_dtype(spec: Any) -> Any:
    # A tf.DType has its NumPy type as an attribute, which needs no TensorFlow.
    return getattr(spec.dtype, "as_numpy_dtype", spec.dtype)


def _outer_shape(dims: Any) -> Any:
    """Returns a shape as a tuple, or as a tensor if it holds tensors; None is `()`."""
    if dims is None:
        return ()
    if _is_tensor(dims):
        return dims if dims.shape.rank else dims[None]
    if isinstance(dims, (tuple, list)) and any(map(_is_tensor, dims)):
        import tensorflow as tf

        return tf.stack(dims)
    return tuple(int(d) for d in np.atleast_1d(np.asarray(dims, np.int64)))


def _join(outer_shape: Any, inner_shape: tuple[int, ...]) -> Any:
    if isinstance(outer_shape, tuple):
        return outer_shape + inner_shape
    import tensorflow as tf

    return tf.concat([outer_shape, tf.constant(inner_shape, outer_shape.dtype)], 0)


def _holds_tensors(nest: Any) -> bool:
    """Returns whether the first leaf of a nest is a tensor."""
    if isinstance(nest, np.ndarray):
        return False
    leaves = tree.flatten(nest)
    return bool(leaves) and _is_tensor(leaves[0])


def _is_tensor(value: Any) -> bool:
    # A caller that holds a tensor has imported TensorFlow, so it is not imported here.
    tf = sys.modules.get("tensorflow")
    return (
        tf is not None
        and not isinstance(value, (np.ndarray, np.generic, float, int))
        and tf.is_tensor(value)
    )


def _holds_tensor_specs(observation_spec: Any, reward_spec: Any) -> bool:
    """Returns whether the specs are tensor specs.

    Raises:
      TypeError: If one consists of array specs and the other of tensor specs.
    """
    kinds = {
        field: _is_tensor_spec(leaves[0])
        for field, spec in (("observation", observation_spec), ("reward", reward_spec))
        if spec is not None and (leaves := tree.flatten(spec))
    }
    if len(set(kinds.values())) == 2:
        raise TypeError(
            "time_step_spec: observation_spec and reward_spec must both be array specs "
            f"or both be tensor specs, got {observation_spec} and {reward_spec}; "
            "convert one of them with tensor_spec.from_spec or "
            "tensor_spec.to_nest_array_spec."
        )
    return any(kinds.values())


def _is_tensor_spec(spec: Any) -> bool:
    tf = sys.modules.get("tensorflow")
    return tf is not None and isinstance(spec, tf.TypeSpec)
