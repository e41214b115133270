"""Re-exports the helpers that users of TF-Agents import from `common`.

Each group of helpers has its own module (`losses.aggregation`,
`losses.discounting`, `utils.actions`, `utils.variables` and others) and is re-exported
here.
"""

from __future__ import annotations

import contextlib
import numbers
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from tfrl.compilation import variable_substitution
from tfrl.compilation.fast_function import fast_function
from tfrl.losses.aggregation import (
    AggregatedLosses,
    aggregate_losses,
    expand_weights,
)
from tfrl.losses.discounting import (
    discounted_future_sum,
    discounted_future_sum_masked,
    shift_values,
)
from tfrl.losses.elementwise import huber_loss, squared_loss
from tfrl.savers.whole_checkpoints import Checkpointer
from tfrl.specs.spec_proto import load_spec, save_spec
from tfrl.utils import number_checks, value_ops
from tfrl.utils.actions import (
    clip_to_spec,
    entropy,
    index_with_actions,
    log_probability,
    scale_to_spec,
    spec_means_and_magnitudes,
)
from tfrl.utils.nests.structure import safe_has_state
from tfrl.utils.random_numbers import seeds
from tfrl.utils.summaries import (
    generate_tensor_summaries,
    summarize_scalar_dict,
    summarize_tensor_dict,
)
from tfrl.utils.variables import (
    check_matching_networks,
    check_no_shared_variables,
    create_variable,
    deduped_network_variables,
    extract_shared_variables,
    maybe_copy_target_network_with_checks,
    soft_variables_update,
)

__all__ = [
    "AggregatedLosses",
    "Checkpointer",
    "OUProcess",
    "Periodically",
    "aggregate_losses",
    "check_matching_networks",
    "check_no_shared_variables",
    "clip_to_spec",
    "compute_returns",
    "convert_q_logits_to_values",
    "create_variable",
    "deduped_network_variables",
    "discounted_future_sum",
    "discounted_future_sum_masked",
    "element_wise_huber_loss",
    "element_wise_squared_loss",
    "entropy",
    "expand_weights",
    "extract_shared_variables",
    "function",
    "generate_tensor_summaries",
    "get_contiguous_sub_episodes",
    "get_episode_mask",
    "index_with_actions",
    "load_spec",
    "log_probability",
    "maybe_copy_target_network_with_checks",
    "ornstein_uhlenbeck_process",
    "replicate",
    "safe_has_state",
    "save_spec",
    "scale_to_spec",
    "shift_values",
    "soft_device_placement",
    "soft_variables_update",
    "spec_means_and_magnitudes",
    "summarize_scalar_dict",
    "summarize_tensor_dict",
    "transpose_batch_time",
]


def function(*args: Any, **kwargs: Any) -> Any:
    """Returns a `tf.function` without AutoGraph that relaxes shapes that vary.

    A train function of whole episodes is thus not traced again for every length. Both
    defaults can be overridden; it takes all arguments of `tf.function`. The result has
    less overhead per call; see `tfrl.compilation.fast_function`.
    """
    return fast_function(
        *args, **{"autograph": False, "reduce_retracing": True, **kwargs}
    )


def element_wise_squared_loss(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Returns `(x - y)^2`, element by element."""
    return squared_loss(y - x)


def element_wise_huber_loss(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Returns the Huber loss of `y - x` with delta 1, element by element."""
    return huber_loss(y - x)


class Periodically(tf.Module):
    """Calls `body` at every `period`-th call: at calls p, 2p, 3p, ..."""

    def __init__(
        self,
        body: Callable[[], Any],
        period: int | tf.Variable | tf.Tensor | None,
        name: str = "periodically",
    ) -> None:
        """Creates the counter of calls.

        Args:
          body: A callable without arguments.
          period: A positive integer, an integer tensor or variable, or None for never.
          name: The module's name.

        Raises:
          TypeError: If `body` cannot be called.
          ValueError: If `period` is not positive.
        """
        super().__init__(name=name)
        if not callable(body):
            raise TypeError(f"body: expected a callable, got {type(body).__name__}.")
        if isinstance(period, numbers.Integral):
            period = int(period)
        if isinstance(period, int) and period < 1:
            raise ValueError(
                f"period: expected a positive number of calls, got {period}; "
                "None means never."
            )
        self._body = body
        self._period = period
        self._counter = create_variable(f"{name}/counter", 0)

    def variables(self) -> list[tf.Variable]:
        """Returns the counter of calls, the only variable."""
        return [self._counter]

    def __call__(self) -> None:
        """Counts this call; calls `body` if the count is a multiple of `period`."""
        if self._period is None:
            return
        if isinstance(self._period, int) and self._period == 1:
            self._body()
            return
        self._counter.assign_add(1)
        due = self._counter % tf.cast(self._period, self._counter.dtype) == 0
        variable_substitution.cond(due, self._body)


def transpose_batch_time(x: tf.Tensor) -> tf.Tensor:
    """Swaps the first two dimensions: `[B, T, ...]` to `[T, B, ...]` and back."""
    return tf.transpose(x, [1, 0, *range(2, x.shape.rank)]) if x.shape.rank > 1 else x


def replicate(tensor: tf.Tensor, outer_shape: Any) -> tf.Tensor:
    """Repeats `tensor` along new outer dimensions of shape `outer_shape`."""
    outer_shape = tf.convert_to_tensor(outer_shape, tf.int32)
    return tf.broadcast_to(tensor, tf.concat([outer_shape, tf.shape(tensor)], axis=0))


def get_episode_mask(time_steps: Any) -> tf.Tensor:
    """Returns 1.0 where a step is not the last of its episode, float32 `[B, T]`.

    Args:
      time_steps: A `TimeStep` whose `step_type` is a tensor, an array or a list.
    """
    steps = time_steps._replace(step_type=tf.convert_to_tensor(time_steps.step_type))
    return tf.cast(~steps.is_last(), tf.float32)


def compute_returns(
    rewards: Any, discounts: Any, time_major: bool = False
) -> tf.Tensor:
    """Returns `R_t = r_t + d_t R_(t+1)`, where the return after the last step is 0.

    Args:
      rewards: `[T]`, `[B, T]`, or `[T, B]` if `time_major`.
      discounts: Like `rewards`; 0 at the end of an episode.
      time_major: Whether time is the first dimension.

    Returns:
      The returns, like `rewards`, without gradient.

    Raises:
      ValueError: If the shapes differ.
    """
    return value_ops.discounted_return(rewards, discounts, time_major=time_major)


def get_contiguous_sub_episodes(next_time_steps_discount: tf.Tensor) -> tf.Tensor:
    """Masks the steps after the first termination in each row, float32 `[B, T]`.

    Args:
      next_time_steps_discount: The environment's discounts, `[B, T]`.

    Returns:
      Rows of ones, up to and including the first discount of zero, then zeros.
    """
    goes_on = tf.cast(next_time_steps_discount != 0, tf.float32)
    return tf.math.cumprod(goes_on, axis=1, exclusive=True)


def convert_q_logits_to_values(logits: tf.Tensor, support: tf.Tensor) -> tf.Tensor:
    """Returns the expectations of categorical distributions, `[B, num_actions]`.

    `Q(x, a) = sum_i z_i p_i(x, a)`: Bellemare et al. 2017 (arXiv:1707.06887), section
    4.

    Args:
      logits: `[B, num_actions, num_atoms]`.
      support: The atoms `z`, `[num_atoms]`.
    """
    return tf.reduce_sum(support * tf.nn.softmax(logits), axis=-1)


@contextlib.contextmanager
def soft_device_placement() -> Iterator[None]:
    """Enables soft device placement, which summaries need if the rest is on a TPU.

    The setting is restored on exit.
    """
    before = tf.config.get_soft_device_placement()
    tf.config.set_soft_device_placement(True)
    try:
        yield
    finally:
        tf.config.set_soft_device_placement(before)


class OUProcess(tf.Module):
    """A zero-mean Ornstein-Uhlenbeck process in discrete time.

    `x <- (1 - damping) x + N(0, stddev^2)`, as in DDPG (Lillicrap et al. 2016,
    arXiv:1509.02971, section 7). Its standard deviation tends to
    `stddev / sqrt(1 - (1 - damping)^2)`. The value and the random stream are variables,
    so that a checkpoint holds them.
    """

    def __init__(
        self,
        initial_value: Any | Callable[[], Any],
        damping: float | tf.Tensor = 0.15,
        stddev: float | tf.Tensor = 0.2,
        seed: int | None = None,
        scope: str = "ornstein_uhlenbeck_noise",
    ) -> None:
        """Creates the process.

        Args:
          initial_value: A float tensor or array of any shape, or a callable that
            returns one.
          damping: In [0, 1]; 0 is a random walk, 1 uncorrelated Gaussian noise.
          stddev: Standard deviation of each step, not negative.
          seed: Starts the random stream; None follows `tf.random.set_seed`.
          scope: The module's name.

        Raises:
          ValueError: If `damping` is a number outside [0, 1], or `stddev` is negative.
        """
        check_ou_parameters(damping, stddev)
        super().__init__(name=scope)
        self._damping = damping
        self._stddev = stddev
        # Created outside of any graph, because the first use may be in a `tf.function`.
        with tf.init_scope():
            value = initial_value() if callable(initial_value) else initial_value
            self._x = tf.Variable(value, trainable=False, name="x")
            self._generator = seeds.make_generator(seed)

    @property
    def value(self) -> tf.Variable:
        """The current value."""
        return self._x

    def __call__(self, seed: tf.Tensor | None = None) -> tf.Tensor:
        """Takes a step and returns the new value.

        Args:
          seed: The seed of the step, an integer tensor `[2]`; None takes one from the
            process's own stream.
        """
        seed = seeds.next_seed(self._generator) if seed is None else seed
        dtype = self._x.dtype
        step = seeds.normal(seed, self._x.shape, dtype)
        step *= tf.cast(self._stddev, dtype)
        keep = 1 - tf.cast(self._damping, dtype)
        return self._x.assign(keep * self._x + step, read_value=True)

    def reset(self, where: tf.Tensor) -> None:
        """Sets the value to zero where `where` is true.

        Args:
          where: A bool tensor whose shape is a prefix of the value's shape; each entry
            applies to all numbers below it.
        """
        inner = self._x.shape.rank - where.shape.rank
        where = tf.reshape(where, [*where.shape, *[1] * inner])
        self._x.assign(tf.where(where, tf.zeros([], self._x.dtype), self._x))


def ornstein_uhlenbeck_process(
    initial_value: Any | Callable[[], Any],
    damping: float | tf.Tensor = 0.15,
    stddev: float | tf.Tensor = 0.2,
    seed: int | None = None,
    scope: str = "ornstein_uhlenbeck_noise",
) -> OUProcess:
    """Returns an `OUProcess` with these arguments; calling it gives noise."""
    return OUProcess(initial_value, damping, stddev, seed, scope)


def check_ou_parameters(damping: Any, stddev: Any, prefix: str = "") -> None:
    """Raises a ValueError unless the numbers define an Ornstein-Uhlenbeck process."""
    number_checks.check_number(
        f"{prefix}damping",
        damping,
        0,
        1,
        remedy="0 is an undamped random walk, 1 uncorrelated noise",
    )
    number_checks.check_number(f"{prefix}stddev", stddev, 0, remedy="0 adds no noise")
