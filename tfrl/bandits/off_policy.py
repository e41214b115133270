"""Logged data of bandits: datasets to learn from, and the value of other policies.

`evaluate` estimates what a policy would earn from the rounds of another policy. Round i
of N has the reward r of the arm a, which the log's policy chose with the probability p,
and the evaluated policy would choose with the probability pi: its weight is w = pi / p.
All three estimates are means of one number a round, for which
`eval.statistics.mean_interval` gives intervals. Dudik, Langford and Li, "Doubly robust
policy evaluation and learning" (2011, arXiv:1103.4601); Swaminathan and Joachims, "The
self-normalized estimator for counterfactual learning" (2015).

>>> import numpy as np
>>> from tfrl.bandits import off_policy
>>> log = off_policy.LoggedData(
...     observation=np.zeros([4, 2]),
...     action=[0, 0, 1, 1],
...     reward=[0.0, 0.0, 1.0, 1.0],
...     propensity=[0.5, 0.5, 0.5, 0.5],
... )
>>> always_1 = np.tile([0.0, 1.0], [4, 1])
>>> off_policy.evaluate(always_1, log).ips.value
1.0
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrl.bandits.policies import linear_models
from tfrl.bandits.specs.utils import checked_arms
from tfrl.eval import statistics
from tfrl.policies import tf_policy
from tfrl.specs.bandit_spec_utils import GLOBAL_FEATURE_KEY, PER_ARM_FEATURE_KEY
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import number_checks

_ROWS = 4096  # In one call of a policy.


class LoggedData(NamedTuple):
    """The rounds of a log, one a row.

    Attributes:
      observation: The contexts, a nest of arrays `[N, ...]` as the policy sees them.
      action: The arms that were chosen, integers `[N]`.
      reward: Their rewards, `[N]`.
      propensity: The probabilities with which the log's policy chose these arms, above
        0, `[N]`.
    """

    observation: Any
    action: Any
    reward: Any
    propensity: Any

    def checked(self) -> LoggedData:
        """Returns the log with arrays; the propensities and rewards are float64.

        Raises:
          ValueError: Columns differ in length, or a number is out of its range.
        """
        observation = tf.nest.map_structure(np.asarray, self.observation)
        action = checked_arms("action", self.action)
        reward, propensity = (np.asarray(x, np.float64) for x in self[2:])
        lengths = {len(x) for x in tf.nest.flatten(observation)}
        shapes = {action.shape, reward.shape, propensity.shape}
        if shapes != {(n,) for n in lengths}:
            raise ValueError(
                f"log: got columns of the shapes {sorted(shapes)} and observations of "
                f"{sorted(lengths)} rows, expected one row a round in each."
            )
        if not (np.all(propensity > 0) and np.all(propensity <= 1)):
            raise ValueError(
                f"propensity: got numbers from {propensity.min()} to "
                f"{propensity.max()}, expected probabilities above 0; give the "
                "probability of the chosen arm, such as 1 / number of arms."
            )
        if not np.all(np.isfinite(reward)) or np.any(action < 0):
            raise ValueError(
                "reward, action: got a number that is not finite or an arm below 0, "
                "expected finite rewards and arms from 0; leave out such rows."
            )
        return LoggedData(observation, action, reward, propensity)

    def rows(self, chosen: Any) -> LoggedData:
        """Returns some of the rounds.

        Args:
          chosen: A slice, or an array of indices or of bools.
        """
        return LoggedData(*tf.nest.map_structure(lambda x: x[chosen], self.checked()))

    def as_dataset(self, agent: Any, batch_size: int) -> tf.data.Dataset:
        """Returns the rounds in order, once, as experience `[B, 1]` for an agent.

        The features of chosen arms and the logarithms of the propensities are in the
        info where the agent's policy has them; other fields of the info are 0.

        Args:
          agent: The agent that learns.
          batch_size: The number of rounds in a batch; the last may have fewer.

        Raises:
          ValueError: See `checked`; or the agent has fewer arms.
        """
        log, spec = self.checked(), agent.collect_data_spec
        checked_arms("action", log.action, agent.num_actions)
        info = tf.nest.map_structure(
            lambda x: np.zeros([len(log.action), *x.shape], x.dtype.as_numpy_dtype),
            spec.policy_info,
        )
        if tf.nest.flatten(getattr(info, "log_probability", ())):
            info = info._replace(log_probability=np.log(log.propensity))
        if hasattr(info, "chosen_arm_features"):
            context = log.observation
            splitter = agent.policy.observation_and_action_constraint_splitter
            context = splitter(context)[0] if splitter else context
            rows = np.arange(len(log.action))
            chosen = tf.nest.map_structure(
                lambda x: np.asarray(x)[rows, log.action], context[PER_ARM_FEATURE_KEY]
            )
            info = info._replace(chosen_arm_features=chosen)
        frames = trajectory.single_step(
            log.observation, log.action, info, log.reward, np.zeros_like(log.reward)
        )
        frames = tf.nest.map_structure(
            lambda x, leaf: np.asarray(x, leaf.dtype.as_numpy_dtype)[:, np.newaxis],
            frames,
            spec,
        )
        dataset = tf.data.Dataset.from_tensor_slices(frames).batch(batch_size)
        return dataset.map(agent.preprocess_sequence)


@dataclasses.dataclass(frozen=True)
class Estimate:
    """The estimated mean reward of a policy, and a confidence interval of it."""

    value: float
    interval: tuple[float, float]

    def __str__(self) -> str:
        return "{:.4f} ({:.4f} to {:.4f})".format(self.value, *self.interval)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Estimates of a policy's mean reward.

    Attributes:
      logged: The mean reward of the log itself, whose policy is to be beaten.
      ips: By inverse propensity scores.
      snips: By self-normalized inverse propensity scores.
      doubly_robust: By predicted rewards, corrected by inverse propensity scores.
      effective_sample_size: `(sum w)^2 / sum w^2`: of how many rounds the estimates
        are. If it is small, the log says little about the policy.
    """

    logged: Estimate
    ips: Estimate
    snips: Estimate
    doubly_robust: Estimate
    effective_sample_size: float

    def __str__(self) -> str:
        named = dataclasses.asdict(self).keys()
        return "\n".join(f"{name}: {getattr(self, name)}" for name in named)


def evaluate(
    policy: Any,
    log: LoggedData,
    rewards: Any = None,
    confidence: float = 0.95,
    max_weight: float | None = None,
) -> Evaluation:
    """Estimates the mean reward of a policy from a log of another one.

    The log must hold rounds on which the policy was not trained.

    Args:
      policy: A policy with a distribution, or the probabilities of all arms, `[N, A]`.
      log: The rounds.
      rewards: Predicted rewards of all arms `[N, A]`, for the doubly robust estimate,
        not fitted to these rounds; None fits linear models (see `fitted_rewards`).
      confidence: The share of such intervals that hold the policy's mean reward.
      max_weight: The largest weight of a round; larger ones are cut, which gives less
        variance, and a bias. None cuts none.

    Raises:
      ValueError: A number of the log is out of its range, or shapes do not fit.
    """
    log = log.checked()
    if len(log.action) < 2:
        raise ValueError(
            f"log: got {len(log.action)} rounds, expected at least 2; give more."
        )
    probabilities = probabilities_of(policy, log.observation)
    number = probabilities.shape[-1]
    if np.any(log.action >= number):
        raise ValueError(
            f"log: got the arm {log.action.max()}, expected arms below {number}, the "
            "number of the policy's arms; give probabilities of all arms."
        )
    sums = np.sum(probabilities, axis=-1)
    if np.any(probabilities < 0) or not np.allclose(sums, 1, atol=1e-3):
        raise ValueError(
            f"policy: got numbers from {probabilities.min()} to {probabilities.max()} "
            f"with sums from {sums.min()} to {sums.max()}, expected the probabilities "
            "of all arms in each round; divide each row by its sum."
        )
    if rewards is None:
        rewards = fitted_rewards(log, probabilities.shape[1])
    rewards, rows = np.asarray(rewards, np.float64), np.arange(len(log.action))
    if len({rewards.shape, probabilities.shape, (len(rows), rewards.shape[-1])}) > 1:
        raise ValueError(
            f"policy, rewards: got {probabilities.shape} probabilities and "
            f"{rewards.shape} rewards for {len(rows)} rounds, expected one of each arm "
            "in each round."
        )
    weight = probabilities[rows, log.action] / log.propensity
    if not np.all(np.isfinite(rewards)):
        raise ValueError(
            f"rewards: got {np.sum(~np.isfinite(rewards))} predictions that are not "
            "finite, expected finite ones; mend the models, or the contexts that were "
            "given to them."
        )
    if max_weight is not None:
        number_checks.check_number(
            "max_weight", max_weight, 0, excludes_low=True, remedy="None cuts none"
        )
        weight = np.minimum(weight, max_weight)
    if not np.any(weight):
        raise ValueError(
            "policy: got one that takes none of the log's actions, expected some; the "
            "log says nothing about it."
        )
    of_policy = np.sum(probabilities * rewards, axis=1)

    def estimate(each: np.ndarray) -> Estimate:
        interval = statistics.mean_interval(each, confidence)
        return Estimate(float(np.mean(each)), interval)

    return Evaluation(
        logged=estimate(log.reward),
        ips=estimate(ips(weight, log.reward)),
        snips=estimate(snips(weight, log.reward)),
        doubly_robust=estimate(
            doubly_robust(weight, log.reward, rewards[rows, log.action], of_policy)
        ),
        effective_sample_size=float(np.sum(weight) ** 2 / np.sum(weight**2)),
    )


def probabilities_of(policy: Any, observation: Any) -> np.ndarray:
    """Returns the probabilities with which a policy chooses arms, float64 `[N, A]`.

    Args:
      policy: A policy with a distribution, or the probabilities.
      observation: The contexts, a nest of arrays `[N, ...]`.
    """
    if not isinstance(policy, tf_policy.TFPolicy):
        return np.asarray(policy, np.float64)

    @tf.function(autograph=False, reduce_retracing=True)
    def of(some: Any) -> tf.Tensor:
        batch_size = tf.shape(tf.nest.flatten(some)[0])[0]
        step = ts.restart(some, batch_size)
        (arms,) = tf.nest.flatten(policy.distribution(step).action)
        return arms.probs_parameter()

    observation = tf.nest.map_structure(
        lambda x, spec: np.asarray(x, spec.dtype.as_numpy_dtype),
        observation,
        policy.time_step_spec.observation,
    )
    dataset = tf.data.Dataset.from_tensor_slices(observation).batch(_ROWS)
    return np.concatenate([of(some).numpy() for some in dataset]).astype(np.float64)


def fitted_rewards(log: LoggedData, num_actions: int, num_folds: int = 2) -> np.ndarray:
    """Returns rewards of all arms, float64 `[N, A]`, that linear models predict.

    The models of a round are fitted to other rounds (cross-fitting), so that the
    doubly robust estimate has no bias by them. Features of arms have one model, other
    contexts one model for each arm, of all their numbers.

    Args:
      log: The rounds.
      num_actions: The number of arms, `A`.
      num_folds: The number of parts of the log, each of which the others predict.
    """
    log = log.checked()
    context, size = log.observation, len(log.action)

    def joined(nest: Any) -> np.ndarray:
        flat = [np.reshape(x, [size, -1]) for x in tf.nest.flatten(nest)]
        return np.concatenate(flat, axis=1)

    has_arms = isinstance(context, dict) and PER_ARM_FEATURE_KEY in context
    if has_arms:
        of_all = joined(context[GLOBAL_FEATURE_KEY])
        context = {**context, GLOBAL_FEATURE_KEY: of_all}
    else:
        context = joined(context)
    x = linear_models.features(context, True).numpy()
    rows, fold = np.arange(size), np.arange(size) % num_folds
    predicted = np.zeros([size, num_actions])
    for k in range(num_folds):
        models = linear_models.LinearBanditVariableCollection(
            x.shape[-1], 1 if has_arms else num_actions
        )
        seen = rows[fold != k]
        for some in np.array_split(seen, -(-len(seen) // _ROWS)):
            action = log.action[some]
            own = x[some, action] if has_arms else x[some]
            model = tf.constant(0 * action if has_arms else action, tf.int32)
            models.add(own, log.reward[some], np.ones(len(some)), model, 1.0)
        theta = models.theta.numpy().T
        predicted[fold == k] = np.reshape(x[fold == k] @ theta, [-1, num_actions])
    return predicted


def ips(weight: np.ndarray, reward: np.ndarray) -> np.ndarray:
    """Returns `w r` of each round, `[N]`: without bias for exact propensities.

    Args:
      weight: The weights w, `[N]`.
      reward: The rewards r, `[N]`.
    """
    return weight * reward


def snips(weight: np.ndarray, reward: np.ndarray) -> np.ndarray:
    """Returns numbers `[N]` whose mean is `sum w r / sum w`.

    Their variance is that of the ratio, to first order (the delta method). The bias
    falls with 1 / N, and the estimate stays within the range of the rewards.

    Args:
      weight: The weights w, `[N]`, not all 0.
      reward: The rewards r, `[N]`.
    """
    value = np.sum(weight * reward) / np.sum(weight)
    return value + weight * (reward - value) / np.mean(weight)


def doubly_robust(
    weight: np.ndarray,
    reward: np.ndarray,
    predicted: np.ndarray,
    predicted_of_policy: np.ndarray,
) -> np.ndarray:
    """Returns `q(pi) + w (r - q(a))` of each round, `[N]`.

    Without bias if the propensities are exact, or the predictions are.

    Args:
      weight: The weights w, `[N]`.
      reward: The rewards r, `[N]`.
      predicted: The predicted rewards of the logged arms, `q(a)`, `[N]`.
      predicted_of_policy: The predicted rewards of the policy, `q(pi)`, `[N]`.
    """
    return predicted_of_policy + weight * (reward - predicted)
