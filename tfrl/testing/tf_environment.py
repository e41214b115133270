"""`TFEnvironmentConformance`: the suite for TensorFlow environments."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.environments import tf_environment
from tfrl.specs import array_spec, tensor_spec
from tfrl.testing.conformance import (
    Conformance,
    check_like_spec,
    check_same,
    fail,
)
from tfrl.trajectories import time_step as ts

_FIRST, _LAST = int(ts.StepType.FIRST), int(ts.StepType.LAST)


class TFEnvironmentConformance(Conformance):
    """Checks that a `TFEnvironment` behaves as drivers and loops expect.

    Write `make_environment`.

    Attributes:
      num_steps: The number of random steps that most checks take.
      seed: The seed of the random actions.
    """

    num_steps: int = 40
    seed: int = 0

    def make_environment(self) -> tf_environment.TFEnvironment:
        """Returns a new environment."""
        raise NotImplementedError(
            f"{type(self).__name__}.make_environment: not written; return a new "
            "environment from it."
        )

    def test_specs_are_nests_of_tensor_specs(self) -> None:
        """Checks that `time_step_spec()` is a `TimeStep` of `tf.TensorSpec`s."""
        environment = self.make_environment()
        spec = environment.time_step_spec()
        if not isinstance(spec, ts.TimeStep):
            fail(
                "time_step_spec()",
                f"a {type(spec).__name__}",
                "a TimeStep of tf.TensorSpecs",
                "make it with time_step.time_step_spec(observation_spec)",
            )
        for leaf in tf.nest.flatten((spec, environment.action_spec())):
            if not isinstance(leaf, tf.TensorSpec):
                fail(
                    "time_step_spec() or action_spec()",
                    f"a {type(leaf).__name__}",
                    "tf.TensorSpec or BoundedTensorSpec",
                    "convert it with tensor_spec.from_spec",
                )
        environment.close()

    def test_reset_starts_every_member(self) -> None:
        """Checks that `reset` gives FIRST and discount 1 to all members."""
        environment = self.make_environment()
        time_step = environment.reset()
        size = environment.batch_size
        check_same(
            (np.full(size, _FIRST, np.int32), np.ones(size, np.float32)),
            (time_step.step_type, time_step.discount),
            "(step_type, discount) of reset()",
            "as at the start of every episode",
            "return time_step.restart(observation, batch_size) from _reset",
        )
        environment.close()

    def test_current_time_step_does_not_step(self) -> None:
        """Checks that `current_time_step` repeats the last result and does not step."""
        environment = self.make_environment()
        environment.current_time_step()
        for moved in (
            environment.reset,
            lambda: environment.step(self._action(environment, 0)),
        ):
            time_step = moved()
            for _ in range(2):
                check_same(
                    time_step,
                    environment.current_time_step(),
                    "current_time_step()",
                    "the time step that reset() or step() had returned",
                    "keep the time step, and return it without another step",
                )
        environment.close()

    def test_time_steps_are_what_the_specs_say(self) -> None:
        """Checks structure, shape, dtype and bounds of time steps, `[B, ...]`."""
        environment = self.make_environment()
        spec, outer = environment.time_step_spec(), (environment.batch_size,)
        time_step = environment.reset()
        for step in range(self.num_steps):
            check_like_spec(
                tf.nest.map_structure(lambda tensor: tensor.numpy(), time_step),
                spec,
                outer,
                f"time step {step}",
                "return tensors of the spec's dtype, with the batch in front",
            )
            time_step = environment.step(self._action(environment, step))
        environment.close()

    def test_steps_follow_in_order(self) -> None:
        """Checks that in each member FIRST follows LAST, and nothing else does."""
        environment = self.make_environment()
        previous = environment.reset().step_type.numpy()
        for step in range(1, self.num_steps):
            now = environment.step(self._action(environment, step)).step_type.numpy()
            wrong = (previous == _LAST) != (now == _FIRST)
            if wrong.any():
                member = int(np.argmax(wrong))
                fail(
                    f"step_type of member {member} at step {step}",
                    f"{now[member]} after {previous[member]}",
                    f"FIRST ({_FIRST}) after LAST ({_LAST}) and only then",
                    "reset each member in the step after its LAST, ignoring its action",
                )
            previous = now
        environment.close()

    def test_it_runs_in_a_graph_and_traces_once(self) -> None:
        """Checks shapes and the order of calls in a graph that is traced once."""
        environment = self.make_environment()
        environment.reset()

        @tf.function(autograph=False)
        def step(action: Any) -> Any:
            before = environment.current_time_step()
            after = environment.step(action)
            shapes = [t.shape for t in tf.nest.flatten(after)]
            if any(s.rank is None or s[0] != environment.batch_size for s in shapes):
                fail(
                    "shapes in a graph",
                    f"{shapes}",
                    f"a static batch of {environment.batch_size} in front",
                    "set the shapes of tensors that come from Python",
                )
            return before, after, environment.current_time_step()

        with environment.reraise():
            for number in range(3):
                current = environment.current_time_step()
                before, after, at_last = step(self._action(environment, number))
                check_same(
                    (current, after),
                    (before, at_last),
                    "current_time_step() before and after step() in a graph",
                    "as step() left it",
                    "keep reading and stepping in order by control dependencies",
                )
        if step.experimental_get_tracing_count() != 1:
            fail(
                "step() in a tf.function",
                f"{step.experimental_get_tracing_count()} traces",
                "one",
                "take no Python numbers that change into the graph",
            )
        environment.close()

    def _action(self, environment: tf_environment.TFEnvironment, number: int) -> Any:
        """Returns the `number`th random action, `[B, ...]`."""
        action = array_spec.sample_spec_nest(
            array_spec.bounded_actions(
                tensor_spec.to_nest_array_spec(environment.action_spec())
            ),
            np.random.RandomState(self.seed + number),
            outer_dims=(environment.batch_size,),
        )
        return tf.nest.map_structure(tf.constant, action)
