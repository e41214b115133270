"""Rewards by linear functions, and baselines for metrics, at TF-Agents' path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.bandits.agents import utils
from tfrl.bandits.environments import wheel_py_environment
from tfrl.compilation.python_calls import graph_calls
from tfrl.specs import tensor_spec

# Maps an observation, and whether there is noise, to the rewards of an arm.
_RewardFn = Callable[[Any, bool], Any]


class LinearNormalReward:
    """Draws rewards around the product of an observation and parameters."""

    def __init__(self, theta: Any, sigma: float) -> None:
        """Stores the parameters `[d]` and the standard deviation."""
        self.theta = theta
        self.sigma = sigma

    def __call__(self, x: Any, enable_noise: bool = True) -> Any:
        """Returns the rewards of observations `[..., d]`, with NumPy's global noise."""
        mean = np.dot(x, self.theta)
        return np.random.normal(mean, self.sigma) if enable_noise else mean


class LinearNormalMultipleRewards:
    """Several rewards, each the product of an observation and parameters."""

    def __init__(self, thetas: Any) -> None:
        """Stores the parameters, `[d, rewards]`."""
        self.thetas = thetas

    def __call__(self, x: Any, enable_noise: bool = False) -> Any:
        """Returns the rewards `[..., rewards]` of observations `[..., d]`."""
        del enable_noise
        return np.matmul(x, self.thetas)


def linear_reward_fn_generator(
    theta_list: Iterable[Any], variance: float
) -> list[LinearNormalReward]:
    """Returns an arm for each list of parameters; `variance` is the deviation."""
    return [LinearNormalReward(theta, variance) for theta in theta_list]


def sliding_linear_reward_fn_generator(
    context_dim: int, num_actions: int, variance: float
) -> list[LinearNormalReward]:
    """Returns arms of which arm `a` has the numbers from `a` on as its parameters."""
    return linear_reward_fn_generator(_sliding(context_dim, num_actions), variance)


def normalized_sliding_linear_reward_fn_generator(
    context_dim: int, num_actions: int, variance: float
) -> list[LinearNormalReward]:
    """Returns the arms of `sliding_linear_reward_fn_generator` with small parameters.

    They are divided by `context_dim + num_actions`.
    """
    theta = _sliding(context_dim, num_actions) / (context_dim + num_actions)
    return linear_reward_fn_generator(theta, variance)


def structured_linear_reward_fn_generator(
    context_dim: int, num_actions: int, variance: float, drift_coefficient: float = 0.1
) -> list[LinearNormalReward]:
    """Returns arms whose parameters differ little from those of the arm before.

    Uniform numbers from NumPy's global generator, times `drift_coefficient`, are added
    from arm to arm.
    """
    steps = np.random.rand(num_actions, context_dim)
    steps[1:] *= drift_coefficient
    return linear_reward_fn_generator(steps.cumsum(axis=0), variance)


def linear_multiple_reward_fn_generator(
    per_action_theta_list: Sequence[Any],
) -> list[LinearNormalMultipleRewards]:
    """Returns an arm with several rewards for each matrix of parameters."""
    return [LinearNormalMultipleRewards(theta) for theta in per_action_theta_list]


def random_linear_multiple_reward_fn_generator(
    context_dim: int, num_actions: int, num_rewards: int, squeeze_dims: bool = True
) -> list[LinearNormalMultipleRewards]:
    """Returns arms with uniform parameters `[context_dim, num_rewards]`.

    With `squeeze_dims`, dimensions of size 1 are taken out.
    """
    theta = np.random.rand(num_actions, context_dim, num_rewards)
    return linear_multiple_reward_fn_generator(
        [np.squeeze(each) if squeeze_dims else each for each in theta]
    )


def context_sampling_fn(batch_size: int, context_dim: int) -> np.ndarray:
    """Returns integers from -10 to 9 of NumPy's global generator, float32 `[B, d]`."""
    contexts = np.random.randint(-10, 10, [batch_size, context_dim])
    return contexts.astype(np.float32)


def build_laplacian_over_ordinal_integer_actions_from_env(env: Any) -> np.ndarray:
    """Returns the Laplacian matrix of an environment's arms in a line, `[A, A]`."""
    return utils.build_laplacian_over_ordinal_integer_actions(
        tensor_spec.from_spec(env.action_spec())
    )


def compute_optimal_reward(
    observation: Any,
    per_action_reward_fns: Sequence[_RewardFn],
    enable_noise: bool = False,
) -> np.ndarray:
    """Returns the largest rewards of all arms, `[B]`, of observations `[B, d]`."""
    return _rewards(observation, per_action_reward_fns, enable_noise).max(axis=-1)


def compute_optimal_action(
    observation: Any,
    per_action_reward_fns: Sequence[_RewardFn],
    enable_noise: bool = False,
) -> np.ndarray:
    """Returns the arms with these rewards, `[B]`."""
    return _rewards(observation, per_action_reward_fns, enable_noise).argmax(axis=-1)


def tf_compute_optimal_reward(
    observation: Any,
    per_action_reward_fns: Sequence[_RewardFn],
    enable_noise: bool = False,
) -> tf.Tensor:
    """Returns `compute_optimal_reward` for `RegretMetric`, float32."""
    arguments = per_action_reward_fns, enable_noise
    return _called(compute_optimal_reward, observation, tf.float32, *arguments)


def tf_compute_optimal_action(
    observation: Any,
    per_action_reward_fns: Sequence[_RewardFn],
    enable_noise: bool = False,
    action_dtype: tf.DType = tf.int32,
) -> tf.Tensor:
    """Returns `compute_optimal_action` for `SuboptimalArmsMetric`."""
    arguments = per_action_reward_fns, enable_noise
    return _called(compute_optimal_action, observation, action_dtype, *arguments)


def tf_wheel_bandit_compute_optimal_action(
    observation: Any, delta: float, action_dtype: tf.DType = tf.int32
) -> tf.Tensor:
    """Returns the best arms of the wheel, `[B]`; see `wheel_py_environment`."""
    best = wheel_py_environment.compute_optimal_action
    return _called(best, observation, action_dtype, delta)


def tf_wheel_bandit_compute_optimal_reward(
    observation: Any, delta: float, mu_inside: float, mu_high: float
) -> tf.Tensor:
    """Returns the expected rewards of these arms, float32 `[B]`."""
    best = wheel_py_environment.compute_optimal_reward
    return _called(best, observation, tf.float32, delta, mu_inside, mu_high)


def compute_optimal_reward_with_environment_dynamics(
    observation: tf.Tensor, environment_dynamics: Any
) -> tf.Tensor:
    """Returns the largest expected rewards of `LinearDynamics`, `[B]`."""
    return environment_dynamics.compute_optimal_reward(observation)


def compute_optimal_action_with_environment_dynamics(
    observation: tf.Tensor, environment_dynamics: Any
) -> tf.Tensor:
    """Returns the arms with these rewards, `[B]`."""
    return environment_dynamics.compute_optimal_action(observation)


def compute_optimal_reward_with_classification_environment(
    observation: Any, environment: Any
) -> tf.Tensor:
    """Returns the best expected rewards of a classification's last round, `[B]`."""
    del observation
    return environment.compute_optimal_reward()


def compute_optimal_action_with_classification_environment(
    observation: Any, environment: Any
) -> tf.Tensor:
    """Returns the arms with these rewards, `[B]`."""
    del observation
    return environment.compute_optimal_action()


def compute_optimal_reward_with_movielens_environment(
    observation: Any, environment: Any
) -> tf.Tensor:
    """Returns the best expected rewards of the last round in Python, float32 `[B]`."""
    best = environment.compute_optimal_reward
    return _called(lambda _: best(), observation, tf.float32)


def compute_optimal_action_with_movielens_environment(
    observation: Any, environment: Any, action_dtype: tf.DType = tf.int32
) -> tf.Tensor:
    """Returns the arms with these rewards, `[B]`."""
    best = environment.compute_optimal_action
    return _called(lambda _: best(), observation, action_dtype)


def _sliding(context_dim: int, num_actions: int) -> np.ndarray:
    """Returns parameters `[A, d]`: arm `a` has the numbers from `a` on."""
    return np.add.outer(np.arange(num_actions), np.arange(context_dim, dtype=float))


def _rewards(observation: Any, reward_fns: Sequence[_RewardFn], noise: bool) -> Any:
    return np.stack([fn(observation, noise) for fn in reward_fns], axis=-1)


def _called(
    function: Callable[..., Any], observation: Any, dtype: tf.DType, *arguments: Any
) -> tf.Tensor:
    """Calls a function of NumPy arrays in TensorFlow; returns its numbers, `[B]`."""

    def call(*flat: np.ndarray) -> np.ndarray:
        given = tf.nest.pack_sequence_as(observation, flat)
        return np.asarray(function(given, *arguments), dtype.as_numpy_dtype)

    flat = tf.nest.flatten(observation)
    result = graph_calls.numpy_function(call, flat, dtype)
    return tf.ensure_shape(result, tf.convert_to_tensor(flat[0]).shape[:1])
