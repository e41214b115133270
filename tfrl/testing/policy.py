"""`PolicyConformance`: the suite for TensorFlow policies."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.policies import tf_policy
from tfrl.testing.conformance import Conformance, check_like_spec, check_same, fail
from tfrl.testing.network import sample_inputs
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory


class PolicyConformance(Conformance):
    """Checks that a `TFPolicy` behaves as drivers, agents and savers expect.

    Implement `make_policy`. Override `make_time_step` if observations cannot be random,
    for example if they contain a mask of valid actions, which must not be empty.

    Attributes:
      batch_sizes: The batch sizes on which the policy acts.
    """

    batch_sizes: tuple[int, ...] = (1, 7)

    def make_policy(self) -> tf_policy.TFPolicy:
        """Returns a new policy."""
        raise NotImplementedError(
            f"{type(self).__name__}.make_policy: not written; return a new policy from "
            "it."
        )

    def make_time_step(
        self, policy: tf_policy.TFPolicy, batch_size: int, seed: int = 0
    ) -> ts.TimeStep:
        """Returns a FIRST time step with random observations, `[batch_size, ...]`."""
        spec = policy.time_step_spec
        return ts.TimeStep(
            tf.fill([batch_size], ts.StepType.FIRST),
            tf.nest.map_structure(
                lambda s: tf.zeros([batch_size, *s.shape], s.dtype), spec.reward
            ),
            tf.ones([batch_size]),
            sample_inputs(spec.observation, batch_size, seed),
        )

    def test_steps_are_what_the_specs_say(self) -> None:
        """Checks that actions, states and info fit their specs and the bounds."""
        policy = self.make_policy()
        for size in self.batch_sizes:
            step = policy.action(
                self.make_time_step(policy, size), policy.get_initial_state(size)
            )
            for name in ("action", "state", "info"):
                check_like_spec(
                    tf.nest.map_structure(lambda t: t.numpy(), getattr(step, name)),
                    getattr(policy.policy_step_spec, name),
                    (size,),
                    f"{name} for a batch of {size}",
                    f"return it so from _action, or correct the {name}'s spec",
                )

    def test_the_initial_state_is_what_its_spec_says(self) -> None:
        """Checks that `get_initial_state` is batched for B, unbatched for None."""
        policy = self.make_policy()
        for size in (*self.batch_sizes, None):
            state = policy.get_initial_state(size)
            check_like_spec(
                tf.nest.map_structure(lambda tensor: tensor.numpy(), state),
                policy.policy_state_spec,
                () if size is None else (size,),
                f"get_initial_state({size})",
                "return it so from _get_initial_state",
            )

    def test_the_same_seed_gives_the_same_action(self) -> None:
        """Checks that `action(..., seed=s)` depends on its arguments alone."""
        policy = self.make_policy()
        size = self.batch_sizes[-1]
        time_step = self.make_time_step(policy, size)
        state = policy.get_initial_state(size)
        one, other = (policy.action(time_step, state, seed=3) for _ in range(2))
        check_same(
            one,
            other,
            "action(..., seed=3), called again",
            "as the first time",
            "draw random numbers by stateless operations from the seed of _action",
        )

    def test_the_distribution_is_one_of_the_actions(self) -> None:
        """Checks samples against `action_spec`; skipped if there is no distribution."""
        policy = self.make_policy()
        size = self.batch_sizes[-1]
        try:
            step = policy.distribution(
                self.make_time_step(policy, size), policy.get_initial_state(size)
            )
        except NotImplementedError:
            return
        drawn = tf.nest.map_structure(lambda d: d.sample(seed=[1, 2]), step.action)
        check_like_spec(
            tf.nest.map_structure(lambda tensor: tensor.numpy(), drawn),
            policy.action_spec,
            (size,),
            "a sample of distribution()",
            "give the distributions the action's shape and dtype",
            # `action` clips samples in the tails of a distribution.
            bounds=False,
        )

    def test_it_traces_once(self) -> None:
        """Checks that a `tf.function` of `action` is traced once, without a seed."""
        policy = self.make_policy()
        size = self.batch_sizes[-1]

        @tf.function(autograph=False)
        def act(time_step: ts.TimeStep, state: Any) -> Any:
            return policy.action(time_step, state)

        state = policy.get_initial_state(size)
        for seed in range(3):
            step = act(self.make_time_step(policy, size, seed), state)
            state = step.state
        if act.experimental_get_tracing_count() != 1:
            fail(
                "action in a tf.function",
                f"{act.experimental_get_tracing_count()} traces",
                "one",
                "return states of the dtype and shape that came in",
            )

    def test_a_first_step_forgets_the_state(self) -> None:
        """Checks that the state given with a FIRST step has no effect."""
        policy = self.make_policy()
        size = self.batch_sizes[-1]
        initial = policy.get_initial_state(size)
        if not tf.nest.flatten(initial):
            return
        time_step = self.make_time_step(policy, size)
        other = tf.nest.map_structure(lambda tensor: tensor + 1, initial)
        check_same(
            policy.action(time_step, initial, seed=5),
            policy.action(time_step, other, seed=5),
            "action() of a FIRST step with another state",
            "as with the initial state",
            "leave automatic_state_reset on",
        )

    def test_variables_are_listed(self) -> None:
        """Checks `variables()`, and that `update` with itself changes no variable."""
        policy = self.make_policy()
        before = [v.numpy().copy() for v in policy.variables()]
        policy.update(policy)
        check_same(
            before,
            [v.numpy() for v in policy.variables()],
            "variables() after update from itself",
            "as before",
            "return the variables of the policy's networks from _variables",
        )

    def test_its_trajectories_have_its_spec(self) -> None:
        """Checks that trajectories of the policy's steps match `collect_data_spec`."""
        policy = self.make_policy()
        size = self.batch_sizes[-1]
        time_step = self.make_time_step(policy, size)
        step = policy.action(time_step, policy.get_initial_state(size))
        check_like_spec(
            tf.nest.map_structure(
                lambda tensor: tensor.numpy(),
                trajectory.from_transition(time_step, step, time_step),
            ),
            policy.collect_data_spec,
            (size,),
            "a trajectory",
            "declare action_spec and info_spec as _action returns them",
            bounds=False,
        )
