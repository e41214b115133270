"""A policy on NumPy arrays that acts greedily, or at random with some probability."""

from __future__ import annotations

from typing import Any

import numpy as np
import tree

from tfrl.policies import py_policy, random_py_policy
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks


class EpsilonGreedyPolicy(py_policy.PyPolicy):
    """Takes a random action with probability epsilon, else another policy's action.

    The choice is independent for each entry of a batch. The policy state is the state
    of `greedy_policy`. A stateless `greedy_policy` is not called if every entry
    explores.
    """

    def __init__(
        self,
        greedy_policy: py_policy.PyPolicy,
        epsilon: float,
        random_policy: py_policy.PyPolicy | None = None,
        epsilon_decay_end_count: float | None = None,
        epsilon_decay_end_value: float | None = None,
        random_seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          greedy_policy: The policy on arrays whose action is taken if the random one is
            not.
          epsilon: The probability of a random action, in [0, 1].
          random_policy: The policy that chooses the random actions; by default a
            `RandomPyPolicy` that respects the mask of `greedy_policy`'s splitter.
          epsilon_decay_end_count: Number of calls of `action` over which epsilon falls
            linearly to `epsilon_decay_end_value`; None keeps epsilon constant.
          epsilon_decay_end_value: The final value of epsilon, less than `epsilon`.
          random_seed: The seed of the random stream; None takes the system's entropy.

        Raises:
          ValueError: `epsilon` is outside [0, 1], `epsilon_decay_end_count` is not
            positive, or `epsilon_decay_end_value` is missing, negative, or not below
            `epsilon`.
        """
        number_checks.check_number(
            "epsilon", epsilon, 0, 1, remedy="it is a probability"
        )
        decay = _as_decay(epsilon, epsilon_decay_end_count, epsilon_decay_end_value)
        super().__init__(
            greedy_policy.time_step_spec,
            greedy_policy.action_spec,
            greedy_policy.policy_state_spec,
            greedy_policy.info_spec,
            greedy_policy.observation_and_action_constraint_splitter,
        )
        # Two streams, since with the same numbers for both, the decision to explore
        # would determine the random action.
        own_stream, random_stream = np.random.SeedSequence(random_seed).spawn(2)
        self._rng = np.random.default_rng(own_stream)
        self._greedy_policy = greedy_policy
        self._random_policy = random_policy or random_py_policy.RandomPyPolicy(
            greedy_policy.time_step_spec,
            greedy_policy.action_spec,
            info_spec=greedy_policy.info_spec,
            seed=int(random_stream.generate_state(1)[0]),
            observation_and_action_constraint_splitter=(
                greedy_policy.observation_and_action_constraint_splitter
            ),
        )
        self._epsilon = epsilon
        self._decay = decay
        self._count = 0

    def _get_initial_state(self, batch_size: int | None) -> types.NestedArray:
        return self._greedy_policy.get_initial_state(batch_size)

    def _get_epsilon(self) -> float:
        """Returns epsilon for call number `_count`; the first call has number 1."""
        if self._decay is None:
            return self._epsilon
        end_count, end_value = self._decay
        if self._count >= end_count:
            return end_value
        fall = (self._epsilon - end_value) / end_count
        return self._epsilon - (self._count - 1) * fall

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedArray,
        seed: int | None = None,
    ) -> policy_step.PolicyStep:
        self._count += 1
        rng, random_seed, greedy_seed = self._rng, None, None
        if seed is not None:
            rng = np.random.default_rng(seed)
            random_seed, greedy_seed = map(int, rng.integers(2**31, size=2))
        explores = rng.random(np.shape(time_step.step_type)) < self._get_epsilon()
        if not np.any(explores):
            return self._greedy_policy.action(time_step, policy_state, greedy_seed)
        random = self._random_policy.action(time_step, seed=random_seed)
        if np.all(explores) and not tree.flatten(self._policy_state_spec):
            return random._replace(state=policy_state)
        # It is called for all entries, since the state of exploring entries advances,
        # too.
        greedy = self._greedy_policy.action(time_step, policy_state, greedy_seed)
        return policy_step.PolicyStep(
            _choose(explores, random.action, greedy.action),
            greedy.state,
            _choose(explores, random.info, greedy.info),
        )


def _choose(explores: Any, random: Any, greedy: Any) -> Any:
    """Returns the entries of `random` where `explores` is True, else of `greedy`."""
    if np.all(explores):
        return random

    def choose(one: Any, other: Any) -> np.ndarray:
        one, other = np.asarray(one), np.asarray(other)
        mask = np.reshape(explores, explores.shape + (1,) * (one.ndim - explores.ndim))
        return np.where(mask, one, other)

    return tree.map_structure(choose, random, greedy)


def _as_decay(
    epsilon: float, end_count: float | None, end_value: float | None
) -> tuple[float, float] | None:
    """Returns the pair (end_count, end_value), or None if epsilon does not decay."""
    if end_count is None:
        return None
    number_checks.check_number(
        "epsilon_decay_end_count",
        end_count,
        0,
        excludes_low=True,
        remedy="count the calls; None does not decay",
    )
    if end_value is None or not 0 <= end_value < epsilon:
        raise ValueError(
            f"epsilon_decay_end_value: got {end_value}, expected a number in "
            f"[0, {epsilon}), below epsilon; leave out epsilon_decay_end_count if it "
            "is not to decay."
        )
    return end_count, end_value
