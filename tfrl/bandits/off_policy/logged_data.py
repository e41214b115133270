"""A table of what a bandit's policy did: contexts, actions, rewards, propensities."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrl.bandits.specs import arms
from tfrl.specs import bandit_spec_utils
from tfrl.trajectories import trajectory

_ARMS = bandit_spec_utils.PER_ARM_FEATURE_KEY


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
        action = arms.checked("action", self.action)
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
        arms.checked("action", log.action, agent.num_actions)
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
                lambda x: np.asarray(x)[rows, log.action], context[_ARMS]
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
