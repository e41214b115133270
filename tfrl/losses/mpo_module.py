"""`MPO` and `MultiObjectiveMPO`: the losses of MPO, with their dual variables.

The mathematics is in `mpo`. The two classes are modules, because they own the dual
variables, which the losses train.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from tfrl.losses import mpo
from tfrl.losses.shapes import check_ranks, check_same_shape

if TYPE_CHECKING:
    from tfrl.typing import types

# The least logarithm of a dual variable, to which it is clipped after an optimizer's
# step.
_LEAST_LOG = -18.0


@dataclasses.dataclass(frozen=True)
class KLConstraint:
    """The constraint of the weights of one objective.

    Attributes:
      name: The objective's name.
      value: The largest KL divergence of the weights from uniform weights.
    """

    name: str
    value: float

    def __post_init__(self) -> None:
        _check_epsilon(f"KLConstraint {self.name!r}", self.value)


class MPOTerms(NamedTuple):
    """The inputs of the loss of the dual variables, without gradients.

    Attributes:
      values: The values of the actions for each objective, `[N, B, K]`.
      weights: The weights of the actions, computed from `values`, `[N, B, K]`.
      kl_mean: The divergences of the means, `[B, D]`; or their sums, `[B, 1]`, if
        dimensions have no constraints of their own.
      kl_stddev: The divergences of the standard deviations, of the same shape.
      stddev: The standard deviations of the online policy, `[B, D]`.
    """

    values: tf.Tensor
    weights: tf.Tensor
    kl_mean: tf.Tensor
    kl_stddev: tf.Tensor
    stddev: tf.Tensor


class DecoupledMPO(tf.Module, abc.ABC):
    """Base class of `MPO` and `MultiObjectiveMPO`.

    A call returns the mean of all losses, with gradients for the online policy and for
    the dual variables. `policy_loss` and `dual_loss` return the two parts of it for
    each state, and change no variables.
    """

    def __init__(
        self,
        epsilons: Sequence[float],
        epsilon_mean: float,
        epsilon_stddev: float,
        init_log_temperature: float,
        init_log_alpha_mean: float,
        init_log_alpha_stddev: float,
        per_dim_constraining: bool,
        name: str,
    ) -> None:
        """Stores the constraints; see `MPO`. `epsilons` has one per objective."""
        super().__init__(name=name)
        _check_epsilon("epsilon_mean", epsilon_mean)
        _check_epsilon("epsilon_stddev", epsilon_stddev)
        for argument, value in (
            ("init_log_temperature", init_log_temperature),
            ("init_log_alpha_mean", init_log_alpha_mean),
            ("init_log_alpha_stddev", init_log_alpha_stddev),
        ):
            if not math.isfinite(value):
                raise ValueError(
                    f"{argument}: got {value}, expected a finite number; 1 is usual "
                    "for temperatures and means, 10 for standard deviations."
                )
        self._epsilons = tuple(map(float, epsilons))
        self._epsilon_mean = epsilon_mean
        self._epsilon_stddev = epsilon_stddev
        self._init_logs = (
            init_log_temperature,
            init_log_alpha_mean,
            init_log_alpha_stddev,
        )
        self._per_dim_constraining = per_dim_constraining
        self._log_temperatures: tf.Variable | None = None
        self._log_alpha_mean: tf.Variable | None = None
        self._log_alpha_stddev: tf.Variable | None = None

    @abc.abstractmethod
    def _objectives(self, actions: tf.Tensor, q_values: tf.Tensor) -> tf.Tensor:
        """Returns the values of the actions for each objective, `[N, B, K]`."""

    @abc.abstractmethod
    def _temperature_loss(self, losses: tf.Tensor) -> tf.Tensor:
        """Combines the losses `[B, K]` of the temperatures into one loss `[B]`."""

    @property
    @abc.abstractmethod
    def _prefixes(self) -> list[str]:
        """The prefixes of the names of each objective's statistics."""

    def create_variables(
        self, num_dimensions: int, dtype: tf.DType = tf.float32
    ) -> None:
        """Makes the dual variables, unless they exist; the first call makes them, too.

        Args:
          num_dimensions: The number `D` of numbers in an action.
          dtype: The dtype of the values of actions.
        """
        if self._log_temperatures is not None:
            return
        size = num_dimensions if self._per_dim_constraining else 1
        temperature, mean, stddev = (max(x, _LEAST_LOG) for x in self._init_logs)
        with tf.init_scope():
            self._log_temperatures = tf.Variable(
                [temperature] * len(self._epsilons), dtype=dtype, name="log_temperature"
            )
            self._log_alpha_mean = tf.Variable(
                [mean] * size, dtype=dtype, name="log_alpha_mean"
            )
            self._log_alpha_stddev = tf.Variable(
                [stddev] * size, dtype=dtype, name="log_alpha_stddev"
            )

    def project(self) -> None:
        """Clips the logarithms of the dual variables to -18 or more after an update.

        At -18 they still have a gradient, so they can rise again soon.
        """
        for variable in self._duals():
            variable.assign(tf.maximum(variable, _LEAST_LOG))

    def __call__(
        self,
        online_action_distribution: types.Distribution,
        target_action_distribution: types.Distribution,
        actions: types.TensorLike,
        q_values: types.TensorLike,
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Clips the dual variables, and returns the loss and statistics.

        Args:
          online_action_distribution: The online policy's normal distributions: a
            `MultivariateNormalDiag` or an `Independent` of a `Normal`, `[B]` of events
            `[D]`, or a `Normal` `[B, D]`.
          target_action_distribution: The target policy's normal distributions, of the
            same form.
          actions: Actions drawn from the target policy, `[N, B, D]`.
          q_values: The values of the actions, `[N, B]`, or `[N, B, K]` for `K`
            objectives.

        Returns:
          The loss, a scalar, and scalars to log; see `statistics`.
        """
        self.create_variables(
            tf.convert_to_tensor(actions).shape[-1],
            tf.convert_to_tensor(q_values).dtype,
        )
        self.project()
        policy_loss, terms = self.policy_loss(
            online_action_distribution, target_action_distribution, actions, q_values
        )
        loss = tf.reduce_mean(policy_loss + self.dual_loss(terms))
        statistics = self.statistics(terms)
        return loss, {"loss_policy": tf.reduce_mean(policy_loss), **statistics}

    def policy_loss(
        self,
        online_action_distribution: types.Distribution,
        target_action_distribution: types.Distribution,
        actions: types.TensorLike,
        q_values: types.TensorLike,
    ) -> tuple[tf.Tensor, MPOTerms]:
        """Returns the loss `[B]` of the online policy, and the terms of `dual_loss`.

        The arguments are as for a call. Gradients flow into the online policy alone.

        Raises:
          ValueError: The shapes do not fit.
        """
        actions = tf.stop_gradient(tf.convert_to_tensor(actions))
        q_values = tf.convert_to_tensor(q_values)
        check_ranks((3,), actions=actions)
        check_same_shape(
            outer_dimensions_of_actions=actions.shape[:2],
            outer_dimensions_of_q_values=q_values.shape[:2],
        )
        values = tf.stop_gradient(self._objectives(actions, q_values))
        mean, stddev = _mean_and_stddev(online_action_distribution)
        target_mean, target_stddev = map(
            tf.stop_gradient, _mean_and_stddev(target_action_distribution)
        )
        check_same_shape(
            one_of_actions=actions.shape[1:],
            online_action_distribution=mean,
            target_action_distribution=target_mean,
        )
        weights = mpo.mpo_weights(values, self._temperatures())
        total = tf.reduce_sum(weights, axis=-1)
        kl_mean = self._constrained(mpo.kl_of_means(target_mean, target_stddev, mean))
        kl_stddev = self._constrained(mpo.kl_of_stddevs(target_stddev, stddev))
        alpha_mean, alpha_stddev = self._alphas()
        loss = (
            mpo.weighted_cross_entropy(actions, total, mean, target_stddev)
            + mpo.weighted_cross_entropy(actions, total, target_mean, stddev)
            + mpo.kl_penalty(kl_mean, alpha_mean)
            + mpo.kl_penalty(kl_stddev, alpha_stddev)
        )
        terms = MPOTerms(values, weights, kl_mean, kl_stddev, stddev)
        return loss, MPOTerms(*map(tf.stop_gradient, terms))

    def dual_loss(self, terms: MPOTerms) -> tf.Tensor:
        """Returns the loss `[B]` of the dual variables.

        Args:
          terms: The terms that `policy_loss` returned.
        """
        alpha_mean, alpha_stddev = self._alphas()
        return (
            self._temperature_loss(self._temperature_losses(terms))
            + mpo.kl_dual_loss(terms.kl_mean, alpha_mean, self._epsilon_mean)
            + mpo.kl_dual_loss(terms.kl_stddev, alpha_stddev, self._epsilon_stddev)
        )

    def statistics(self, terms: MPOTerms) -> dict[str, tf.Tensor]:
        """Returns scalars to log, means over the states.

        Args:
          terms: The terms that `policy_loss` returned.

        Returns:
          The dual variables `dual_alpha_mean`, `dual_alpha_stddev` and, for each
          objective, `dual_temperature`; `loss_alpha` and `loss_temperature`; the
          divergences divided by the largest allowed divergences: `kl_q_rel` of each
          objective's weights, `kl_mean_rel` and `kl_stddev_rel` of the policy, with
          `_min` and `_max` over the dimensions; the values of each objective, `q_min`,
          `q_mean` and `q_max`; and the standard deviations, `pi_stddev_min`,
          `pi_stddev_max` and their quotient `pi_stddev_cond`. A second objective of
          `MPO`, the penalty, has the prefix `penalty_`; the objectives of
          `MultiObjectiveMPO` have their names as prefixes.
        """
        alphas = self._alphas()
        result = {
            "dual_alpha_mean": tf.reduce_mean(alphas[0]),
            "dual_alpha_stddev": tf.reduce_mean(alphas[1]),
            "loss_alpha": tf.reduce_mean(
                mpo.kl_dual_loss(terms.kl_mean, alphas[0], self._epsilon_mean)
                + mpo.kl_dual_loss(terms.kl_stddev, alphas[1], self._epsilon_stddev)
            ),
        }
        for name, kl, epsilon in (
            ("kl_mean_rel", terms.kl_mean, self._epsilon_mean),
            ("kl_stddev_rel", terms.kl_stddev, self._epsilon_stddev),
        ):
            relative = tf.reduce_mean(kl, axis=0) / epsilon
            result[name] = tf.reduce_mean(relative)
            result[f"{name}_min"] = tf.reduce_min(relative)
            result[f"{name}_max"] = tf.reduce_max(relative)
        of_objectives = {
            "dual_temperature": self._temperatures(),
            "loss_temperature": tf.reduce_mean(self._temperature_losses(terms), axis=0),
            "kl_q_rel": tf.reduce_mean(mpo.weights_kl(terms.weights), axis=0)
            / self._epsilons,
            "q_min": tf.reduce_mean(tf.reduce_min(terms.values, axis=0), axis=0),
            "q_mean": tf.reduce_mean(terms.values, axis=[0, 1]),
            "q_max": tf.reduce_mean(tf.reduce_max(terms.values, axis=0), axis=0),
        }
        for name, numbers in of_objectives.items():
            for i, prefix in enumerate(self._prefixes):
                result[prefix + name] = numbers[i]
        least = tf.reduce_min(terms.stddev, axis=-1)
        largest = tf.reduce_max(terms.stddev, axis=-1)
        result["pi_stddev_min"] = tf.reduce_mean(least)
        result["pi_stddev_max"] = tf.reduce_mean(largest)
        result["pi_stddev_cond"] = tf.reduce_mean(largest / least)
        return result

    def _duals(self) -> tuple[tf.Variable, tf.Variable, tf.Variable]:
        assert self._log_temperatures is not None, "create_variables comes first"
        assert self._log_alpha_mean is not None
        assert self._log_alpha_stddev is not None
        return self._log_temperatures, self._log_alpha_mean, self._log_alpha_stddev

    def _temperatures(self) -> tf.Tensor:
        return mpo.dual_of(self._duals()[0])

    def _alphas(self) -> list[tf.Tensor]:
        return [mpo.dual_of(variable) for variable in self._duals()[1:]]

    def _temperature_losses(self, terms: MPOTerms) -> tf.Tensor:
        return mpo.mpo_temperature_loss(
            terms.values, self._temperatures(), self._epsilons
        )

    def _constrained(self, kl: tf.Tensor) -> tf.Tensor:
        """Returns the divergences that are constrained, `[B, D]` or `[B, 1]`."""
        if self._per_dim_constraining:
            return kl
        return tf.reduce_sum(kl, axis=-1, keepdims=True)


class MPO(DecoupledMPO):
    """The losses of MPO, with separate KL constraints of means and standard deviations.

    Abdolmaleki et al. 2018 (arXiv:1812.02256). Actions outside of [-1, 1] are penalised
    as a second objective of MPO (Abdolmaleki et al. 2020, arXiv:2005.07513), which
    keeps a policy with unbounded means inside this range.
    """

    def __init__(
        self,
        epsilon: float,
        epsilon_mean: float,
        epsilon_stddev: float,
        init_log_temperature: float,
        init_log_alpha_mean: float,
        init_log_alpha_stddev: float,
        per_dim_constraining: bool = True,
        action_penalization: bool = True,
        epsilon_penalty: float = 0.001,
        name: str = "MPO",
    ) -> None:
        """Stores the constraints. A dual variable is `softplus(log) + 1e-8`.

        Args:
          epsilon: The largest KL divergence of the actions' weights from uniform
            weights.
          epsilon_mean: The largest divergence that a change of the mean may cause.
          epsilon_stddev: The largest divergence that a change of the standard deviation
            may cause.
          init_log_temperature: The initial `log` of the temperatures.
          init_log_alpha_mean: The initial `log` of the dual variables of the means.
          init_log_alpha_stddev: The initial `log` of the dual variables of the standard
            deviations.
          per_dim_constraining: Whether each dimension of the actions has its own
            constraints; otherwise the sums over the dimensions are constrained.
          action_penalization: Whether actions outside of [-1, 1] are penalised.
          epsilon_penalty: The largest KL divergence of the penalty's weights from
            uniform weights.
          name: The module's name.

        Raises:
          ValueError: A divergence is negative, or a number is not finite.
        """
        _check_epsilon("epsilon", epsilon)
        _check_epsilon("epsilon_penalty", epsilon_penalty)
        super().__init__(
            [epsilon, epsilon_penalty] if action_penalization else [epsilon],
            epsilon_mean,
            epsilon_stddev,
            init_log_temperature,
            init_log_alpha_mean,
            init_log_alpha_stddev,
            per_dim_constraining,
            name,
        )
        self._action_penalization = action_penalization

    def _objectives(self, actions: tf.Tensor, q_values: tf.Tensor) -> tf.Tensor:
        check_ranks((2,), q_values=q_values)
        if not self._action_penalization:
            return q_values[..., tf.newaxis]
        penalty = tf.cast(mpo.out_of_bounds_value(actions), q_values.dtype)
        return tf.stack([q_values, penalty], axis=-1)

    def _temperature_loss(self, losses: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(losses, axis=-1)

    @property
    def _prefixes(self) -> list[str]:
        return ["", "penalty_"][: len(self._epsilons)]


class MultiObjectiveMPO(DecoupledMPO):
    """The losses of MPO for several objectives, each with its own temperature.

    The policy is fitted to the sum of the objectives' weights, so an objective's
    influence depends on its constraint, not on the scale of its values. Abdolmaleki et
    al. 2020 (arXiv:2005.07513).
    """

    def __init__(
        self,
        epsilons: Sequence[KLConstraint],
        epsilon_mean: float,
        epsilon_stddev: float,
        init_log_temperature: float,
        init_log_alpha_mean: float,
        init_log_alpha_stddev: float,
        per_dim_constraining: bool = True,
        name: str = "MOMPO",
    ) -> None:
        """Stores the constraints.

        Args:
          epsilons: The constraint of each objective, in the order of the values.
          epsilon_mean: See `MPO`.
          epsilon_stddev: See `MPO`.
          init_log_temperature: See `MPO`.
          init_log_alpha_mean: See `MPO`.
          init_log_alpha_stddev: See `MPO`.
          per_dim_constraining: See `MPO`.
          name: The module's name.

        Raises:
          ValueError: There are no objectives, two have the same name, a divergence is
            negative, or a number is not finite.
        """
        names = tuple(constraint.name for constraint in epsilons)
        if len(set(names)) != len(names):
            raise ValueError(
                f"epsilons: got the names {names}, expected different ones, since the "
                "statistics of an objective are named by it; rename one."
            )
        if not names:
            raise ValueError(
                "epsilons: got no constraints, expected one for each objective; give "
                "a KLConstraint('reward', 0.1), say."
            )
        super().__init__(
            [constraint.value for constraint in epsilons],
            epsilon_mean,
            epsilon_stddev,
            init_log_temperature,
            init_log_alpha_mean,
            init_log_alpha_stddev,
            per_dim_constraining,
            name,
        )
        self._objective_names = names

    @property
    def objective_names(self) -> tuple[str, ...]:
        """The names of the objectives."""
        return self._objective_names

    def _objectives(self, actions: tf.Tensor, q_values: tf.Tensor) -> tf.Tensor:
        del actions
        check_ranks((3,), q_values=q_values)
        if q_values.shape[-1] != len(self._objective_names):
            raise ValueError(
                f"q_values: got shape {q_values.shape}, expected [N, B, K] with K = "
                f"{len(self._objective_names)}, one for each of "
                f"{self._objective_names}; stack the values on the last axis."
            )
        return q_values

    def _temperature_loss(self, losses: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(losses, axis=-1)

    @property
    def _prefixes(self) -> list[str]:
        return [f"{name}_" for name in self._objective_names]


def _mean_and_stddev(distribution: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the means and standard deviations `[B, D]` of normal distributions.

    Raises:
      TypeError: The distributions are of another kind, or their numbers are not
        independent.
    """
    import tensorflow_probability as tfp

    kind = tfp.distributions
    inner = distribution
    if isinstance(inner, kind.Independent):
        inner = inner.distribution
    if not isinstance(inner, kind.Normal | kind.MultivariateNormalDiag):
        raise TypeError(
            f"distribution: got {distribution!r}, expected a MultivariateNormalDiag, a "
            "Normal, or an Independent of one, whose KL divergences MPO knows; end the "
            "policy network with a MultivariateNormalDiagHead, and without squashing."
        )
    return distribution.mean(), distribution.stddev()


def _check_epsilon(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(
            f"{name}: got {value}, expected a KL divergence, a finite number that is "
            "not negative; 0.1 is usual for weights of actions, 1e-3 for means."
        )
