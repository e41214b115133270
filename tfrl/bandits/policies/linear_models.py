"""The state of linear bandits: sums over the rows of each model, and inverses.

A row of model m has features x, reward r and weight w. The state has, for each model,

    A = sum w x x',  b = sum w r x,  P = (A + ridge I)^-1,  theta = P b.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.bandits.policies import linalg
from tfrl.policies import utils as policy_utils
from tfrl.policies.acting import validation
from tfrl.specs import bandit_spec_utils
from tfrl.specs.bandit_spec_utils import GLOBAL_FEATURE_KEY, PER_ARM_FEATURE_KEY
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks

# The least ridge, so that a model without rows has an inverse, and with it an
# uncertainty. It is far below the rounding errors of a reward's prediction.
_LEAST_RIDGE = 1e-8
# Up to so many rows for each feature, updates of rank one are faster than a factor.
_FEW_ROWS = 4
# After so many updates of rank one, inverses are computed from the sums again.
_ROWS_BETWEEN_FACTORS = 1024
# The same is done after a row whose weighted variance `w x' P x` is above this, since
# its update of rank one cancels about as many digits as this number has.
_LARGEST_GAIN = 1e4


class LinearBanditVariableCollection(tf.Module):
    """The variables of a linear bandit, float64, with a model on the first axis.

    Attributes:
      cov_matrix: A of each model, `[M, d, d]`.
      data_vector: b of each model, `[M, d]`.
      num_samples: The sum of the weights of each model's rows, `[M]`.
      inverse: P of each model, `[M, d, d]`.
      theta: The parameters of each model, `[M, d]`.
    """

    def __init__(
        self,
        context_dim: int,
        num_models: int,
        use_eigendecomp: bool = False,
        dtype: tf.DType = tf.float32,
        name: str | None = None,
    ) -> None:
        """Creates the variables of models without rows.

        Args:
          context_dim: The number of features, `d`.
          num_models: The number of models, `M`.
          use_eigendecomp: Has no effect; the state does not depend on the way to solve.
          dtype: The dtype of the lists; sums of squares need float64.
          name: The module's name.
        """
        super().__init__(name=name)
        del use_eigendecomp
        number_checks.check_sizes(context_dim=context_dim, num_models=num_models)
        self._dtype = tf.as_dtype(dtype)
        vectors = [num_models, context_dim]
        matrices = [*vectors, context_dim]
        self.cov_matrix = _zeros("cov_matrix", matrices)
        self.data_vector = _zeros("data_vector", vectors)
        self.num_samples = _zeros("num_samples", [num_models])
        self.inverse = _zeros("inverse", matrices)
        self.theta = _zeros("theta", vectors)
        # Rows since the inverses were last computed from the sums.
        self._recent = tf.Variable(0, dtype=tf.int64, trainable=False, name="recent")

    @property
    def cov_matrix_list(self) -> list[tf.Tensor]:
        """The matrix A of each model."""
        return self._list(self.cov_matrix)

    @property
    def data_vector_list(self) -> list[tf.Tensor]:
        """The vector b of each model."""
        return self._list(self.data_vector)

    @property
    def num_samples_list(self) -> list[tf.Tensor]:
        """The sum of the weights of each model's rows."""
        return self._list(self.num_samples)

    @property
    def eig_vals_list(self) -> list[tf.Tensor]:
        """The eigenvalues of each A, computed now."""
        return self._list(tf.linalg.eigh(self.cov_matrix)[0])

    @property
    def eig_matrix_list(self) -> list[tf.Tensor]:
        """The eigenvectors of each A, computed now."""
        return self._list(tf.linalg.eigh(self.cov_matrix)[1])

    def policy_arguments(self) -> dict[str, Any]:
        """Returns the arguments of a policy that reads these models."""
        fields = "cov_matrix", "data_vector", "num_samples", "theta", "inverse"
        return {field: getattr(self, field) for field in fields}

    def _list(self, stacked: Any) -> list[tf.Tensor]:
        return tf.unstack(tf.cast(stacked, self._dtype))

    def solve(self, ridge: float) -> None:
        """Computes the inverses and the parameters from the sums.

        Args:
          ridge: The weight of the squared parameters in the least squares; see
            `ridge_of`.
        """
        self._write(linalg.inverses(self.cov_matrix.read_value(), ridge_of(ridge)), 0)

    def add(
        self,
        rows: tf.Tensor,
        rewards: tf.Tensor,
        weights: tf.Tensor,
        models: tf.Tensor,
        ridge: float,
        gamma: float = 1.0,
    ) -> None:
        """Adds rows to their models.

        With `gamma` below 1, each row first multiplies the sums of its own model by
        `gamma`, so the result does not depend on how rows are divided into calls.

        Args:
          rows: Features, float64 `[n, d]`.
          rewards: Float64 `[n]`.
          weights: Float64 `[n]`; a row of weight 0 changes nothing.
          models: The number of each row's model, int32 `[n]`.
          ridge: See `solve`.
          gamma: How much of the sums each row keeps.
        """
        belongs = tf.one_hot(models, self.theta.shape[0], dtype=tf.float64)
        counts = tf.cast(weights > 0, tf.float64)[:, tf.newaxis] * belongs
        kept = tf.ones(self.num_samples.shape, tf.float64)
        if gamma < 1:
            later = tf.cumsum(counts, exclusive=True, reverse=True)
            weights *= gamma ** tf.reduce_sum(later * belongs, axis=1)
            kept = gamma ** tf.reduce_sum(counts, axis=0)
        own = belongs * weights[:, tf.newaxis]
        # One product for all models: [M d, n] times [n, d].
        spread = tf.einsum("nm,nd->mdn", own, rows)
        squares = tf.matmul(spread, rows)
        self.cov_matrix.assign(kept[:, None, None] * self.cov_matrix + squares)
        self.data_vector.assign(
            kept[:, None] * self.data_vector + tf.linalg.matvec(spread, rewards)
        )
        self.num_samples.assign(kept * self.num_samples + tf.reduce_sum(own, axis=0))
        size = rows.shape[0]
        if gamma < 1 or size is None or size > _FEW_ROWS * rows.shape[1]:
            self.solve(ridge)
            return
        recent = self._recent.read_value() + size
        before, sums = self.inverse.read_value(), self.cov_matrix.read_value()
        updated, largest = linalg.add_rows(before, rows, weights, models)
        is_exact = (recent < _ROWS_BETWEEN_FACTORS) & (largest <= _LARGEST_GAIN)
        inverse = tf.cond(
            is_exact, lambda: updated, lambda: linalg.inverses(sums, ridge_of(ridge))
        )
        self._write(inverse, tf.where(is_exact, recent, 0))

    def _write(self, inverse: tf.Tensor, recent: tf.Tensor | int) -> None:
        self.inverse.assign(inverse)
        self.theta.assign(tf.linalg.matvec(inverse, self.data_vector))
        self._recent.assign(recent)


def _zeros(name: str, shape: Any) -> Any:
    return tf.Variable(tf.zeros(shape, tf.float64), trainable=False, name=name)


class LinearModels(tf.Module):
    """Linear models as policies read them, from sums or with inverses kept."""

    def __init__(
        self,
        shape: tuple[int, int],
        cov_matrix: Any,
        data_vector: Any,
        num_samples: Any,
        theta: Any = None,
        inverse: Any = None,
        tikhonov_weight: float = 1.0,
    ) -> None:
        """Stores what predictions depend on; see `LinearBanditPolicy`.

        Args:
          shape: The numbers of features and of models; see `shape_of`.
          cov_matrix: See `LinearBanditPolicy`; unused with `inverse`.
          data_vector: See `LinearBanditPolicy`; unused with `theta`.
          num_samples: Among the variables of a policy of sums, as in TF-Agents.
          theta: See `LinearBanditPolicy`.
          inverse: See `LinearBanditPolicy`.
          tikhonov_weight: See `LinearBanditPolicy`.

        Raises:
          ValueError: There are models of another number or size.
        """
        super().__init__()
        context_dim, num_models = shape
        for name, sums, expected in (
            ("cov_matrix", cov_matrix, [num_models, context_dim, context_dim]),
            ("data_vector", data_vector, [num_models, context_dim]),
        ):
            given = tf.convert_to_tensor(sums).shape
            if given != expected:
                raise ValueError(
                    f"{name}: got shape {given}, expected {expected} by the specs; "
                    "give models of this number and size."
                )
        self._cov_matrix = cov_matrix if inverse is None else None
        self._data_vector = data_vector if theta is None else None
        self._num_samples = num_samples if inverse is None else None
        self._theta, self._inverse = theta, inverse
        self._ridge = ridge_of(tikhonov_weight)

    def predict(self, x: tf.Tensor, alpha: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns means `x' theta` and deviations `alpha sqrt(x' P x)`, `[B, A]`.

        Args:
          x: Features, float64: `[B, d]` for a model for each arm, or `[B, A, d]` for
            one model for all arms.
          alpha: The factor of the deviations, a number or a variable.
        """
        inverse, theta = self._inverse, self._theta
        if inverse is None:
            sums = tf.cast(tf.convert_to_tensor(self._cov_matrix), tf.float64)
            identity = tf.eye(sums.shape[-1], dtype=tf.float64)
            inverse = tf.linalg.inv(sums + self._ridge * identity)
        if theta is None:
            vector = tf.cast(tf.convert_to_tensor(self._data_vector), tf.float64)
            theta = tf.linalg.matvec(inverse, vector)
        inverse, theta = tf.cast(inverse, tf.float64), tf.cast(theta, tf.float64)
        if x.shape.rank == 2:
            mean = tf.matmul(x, theta, transpose_b=True)
            projected = tf.einsum("bi,mij->bmj", x, inverse)
            variance = tf.einsum("bmj,bj->bm", projected, x)
        else:
            mean = tf.linalg.matvec(x, theta[0])
            variance = tf.reduce_sum(tf.matmul(x, inverse[0]) * x, axis=-1)
        deviation = tf.sqrt(tf.maximum(variance, 0))
        return mean, tf.cast(alpha, tf.float64) * deviation


def shape_of(
    time_step_spec: ts.TimeStep,
    action_spec: Any,
    observation_and_action_constraint_splitter: types.Splitter | None,
    accepts_per_arm_features: bool,
    add_bias: bool,
) -> tuple[int, int]:
    """Returns the number of features and of models; see `LinearBanditAgent`."""
    validation.check_time_step_spec(time_step_spec)
    spec = policy_utils.network_observation_spec(
        time_step_spec.observation, observation_and_action_constraint_splitter
    )
    dims = bandit_spec_utils.get_context_dims_from_spec(spec, accepts_per_arm_features)
    num_actions = policy_utils.get_num_actions_from_tensor_spec(action_spec)
    return sum(dims) + add_bias, 1 if accepts_per_arm_features else num_actions


def ridge_of(tikhonov_weight: float) -> float:
    """Returns the ridge, which is above 0 if the weight is 0, too.

    Raises:
      ValueError: The weight is negative.
    """
    number_checks.check_number(
        "tikhonov_weight", tikhonov_weight, 0, remedy="1 is usual"
    )
    return max(tikhonov_weight, _LEAST_RIDGE)


def features(observation: Any, add_bias: bool) -> tf.Tensor:
    """Returns the features of models, float64: `[B, d]`, or `[B, A, d]` with arms.

    Args:
      observation: `[B, G]`; `[B]` is one feature. With features of arms, a dictionary
        of such global ones, and of those of arms `[B, A, P]`.
      add_bias: Whether a 1 follows the global features.
    """
    has_arms = isinstance(observation, dict)
    of_all = observation[GLOBAL_FEATURE_KEY] if has_arms else observation
    x = tf.cast(of_all, tf.float64)
    if x.shape.rank == 1:
        x = x[:, tf.newaxis]
    if add_bias:
        x = tf.concat([x, tf.ones_like(x[:, :1])], axis=1)
    if not has_arms:
        return x
    arms = tf.cast(observation[PER_ARM_FEATURE_KEY], tf.float64)
    x = tf.repeat(x[:, tf.newaxis], arms.shape[1], axis=1)
    return tf.concat([x, arms], axis=2)
