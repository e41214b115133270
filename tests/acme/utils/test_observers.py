"""What observers add to the log of an `EnvironmentLoop`."""

import dm_env
import numpy as np
import pytest

from tfrl.acme.utils import observers


class Informs:
    def get_info(self):
        return {"fuel": 2.0, "name": np.zeros(3)}


def observe(observer, environment=None):
    actions = [np.array([[0.0, 3.0]]), np.array([[4.0, -3.0]]), np.array([[1.0, 0.0]])]
    for _ in range(2):  # The second episode alone counts.
        observer.observe_first(environment, dm_env.restart(np.array([9.0])))
        for i, action in enumerate(actions):
            timestep = dm_env.transition(0.0, np.array([float(i)]))
            observer.observe(environment, timestep, action)
    return observer.get_metrics()


def test_norms_of_actions():
    metrics = observe(observers.ActionNormObserver())
    assert metrics["action_norm_max"] == 5
    assert metrics["action_norm_min"] == 1
    assert metrics["action_norm_avg"] == 3


def test_statistics_of_actions():
    metrics = observe(observers.ContinuousActionObserver())
    assert len(metrics) == 8
    assert metrics["action[0, 0]_max"] == 4
    assert metrics["action[0, 1]_min"] == -3
    assert metrics["action[0, 1]_mean"] == 0
    assert metrics["action[0, 0]_p50"] == 1
    assert observers.ContinuousActionObserver().get_metrics() == {}


def test_statistics_of_observations():
    metrics = observe(observers.MeasurementObserver())
    expected = {"max": 2, "min": 0, "mean": 1, "p25": 0.5, "p50": 1, "p75": 1.5}
    assert metrics == {f"measurement[0]_{k}": v for k, v in expected.items()}


@pytest.mark.parametrize(
    ("environment", "expected"), [(Informs(), {"fuel": 8.0}), (object(), {})]
)
def test_sums_of_what_an_environment_tells(environment, expected):
    assert observe(observers.EnvInfoObserver(), environment) == expected
