"""Each check of `TFEnvironmentConformance` finds the fault it is for."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import testing
from tfrl.environments import tf_environment
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

FIRST, LAST = 0, 2


class Good(tf_environment.TFEnvironment):
    """Two members that count to three, and start again."""

    def __init__(self):
        super().__init__(
            ts.time_step_spec(tf.TensorSpec([], tf.int64, "count")),
            tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1, "action"),
            batch_size=2,
        )
        self._count = tf.Variable([-1, -1], dtype=tf.int64)

    def _time_step(self):
        count = self._count.read_value()
        last = count == 3
        return ts.TimeStep(
            tf.where(last, LAST, tf.where(count == 0, FIRST, 1)),
            tf.cast(count > 0, tf.float32),
            tf.where(last, 0.0, 1.0),
            count,
        )

    def _current_time_step(self):
        self._count.assign(tf.maximum(self._count, 0))
        return self._time_step()

    def _reset(self):
        self._count.assign([0, 0])
        return self._time_step()

    def _step(self, action):
        self._count.assign((self._count + 1) % 4)
        return self._time_step()


class WithArraySpecs(Good):
    def action_spec(self):
        return np.int32


class StartsInTheMiddle(Good):
    def _reset(self):
        self._count.assign([0, 1])
        return self._time_step()


class StepsWhenAsked(Good):
    def _current_time_step(self):
        return self._step(None)


class WrongDtype(Good):
    def _time_step(self):
        step = super()._time_step()
        return step._replace(observation=tf.cast(step.observation, tf.int32))


class StopsAtTheEnd(Good):
    def _step(self, action):
        self._count.assign(tf.minimum(self._count + 1, 3))
        return self._time_step()


class LosesItsShape(Good):
    def _step(self, action):
        step = super()._step(action)
        unknown = tf.numpy_function(lambda x: x, [step.observation], tf.int64)
        return step._replace(observation=unknown)


FAULTS = [
    (WithArraySpecs, "test_specs_are_nests_of_tensor_specs", "tensor_spec.from_spec"),
    (StartsInTheMiddle, "test_reset_starts_every_member", "restart"),
    (StepsWhenAsked, "test_current_time_step_does_not_step", "without another step"),
    (WrongDtype, "test_time_steps_are_what_the_specs_say", "observation.*int32"),
    (StopsAtTheEnd, "test_steps_follow_in_order", "after LAST"),
    (LosesItsShape, "test_it_runs_in_a_graph_and_traces_once", "static batch of 2"),
]


def suite_of(environment):
    class Suite(testing.TFEnvironmentConformance):
        def make_environment(self):
            return environment()

    return Suite()


def test_a_good_environment_passes():
    suite_of(Good).run_all()


@pytest.mark.parametrize(
    ("environment", "check", "message"),
    FAULTS,
    ids=[environment.__name__ for environment, _, _ in FAULTS],
)
def test_a_fault_is_found(environment, check, message):
    with pytest.raises(AssertionError, match=message):
        getattr(suite_of(environment), check)()


def test_every_check_has_a_fault():
    covered = {check for _, check, _ in FAULTS}
    assert covered == set(testing.TFEnvironmentConformance.checks())


def test_a_suite_without_an_environment_says_what_to_write():
    with pytest.raises(NotImplementedError, match="make_environment: not written"):
        testing.TFEnvironmentConformance().run_all()
