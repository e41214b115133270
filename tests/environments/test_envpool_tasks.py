"""Every task of EnvPool is made by its name, stepped and, if EnvPool draws it, drawn.

Each chunk of a family has a process of its own, which a fault in C++ would end.
"""

import json
import os
import subprocess
import sys

import pytest

from tests.forks import REPOSITORY

pytest.importorskip("envpool")
from envpool import registration

from tfrl.environments.gymnasium import envpool_vector_env

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PER_PROCESS = 40
CODE = """
import json, sys, warnings
import numpy as np
from tfrl.environments import suites
from tfrl.specs import array_spec

warnings.simplefilter("ignore")  # Of the bounds of EnvPool's spaces.
rng = np.random.default_rng(0)
for name in json.loads(sys.argv[1]):
    print(json.dumps([name, "began"]), flush=True)
    try:
        environment = suites.load(name, 2)
        environment.seed(0)
        time_step = environment.reset()
        spec = array_spec.add_outer_dims_nest(environment.time_step_spec(), (2,))
        for _ in range(12):
            assert array_spec.check_arrays_nest(time_step, spec)
            actions = environment.action_spec()
            time_step = environment.step(
                array_spec.sample_spec_nest(actions, rng, outer_dims=(2,))
            )
        if suites.find(name)[0].films(name):
            try:
                pictures = environment.render()
            except NotImplementedError as error:
                assert "/_official_render/img/" in str(error)  # Six of Jumanji's.
            else:
                assert pictures.dtype == np.uint8 and pictures.shape[::3] == (2, 3)
        environment.close()
        result = "works"
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    print(json.dumps([name, result]), flush=True)
"""


def chunks():
    """Yields the families and their tasks, each task under one of its names."""
    families = {}
    for name, (module, kind, options) in registration.registry.specs.items():
        key = module, kind, repr(options)
        families.setdefault(envpool_vector_env.family(name), {}).setdefault(key, name)
    for family, tasks in sorted(families.items()):
        names = list(tasks.values())
        for start in range(0, len(names), PER_PROCESS):
            yield family, names[start : start + PER_PROCESS]


def expected(family, name):
    """Returns a part of what is told of a task."""
    if "MultiAgent" in name or (family == "pgx" and name != "Play2048-v1"):
        return f"ValueError: environment_name: got {name!r}, a task of "
    if name in ("Cig-v1", "MultiDuel-v1"):
        return f"ValueError: environment_name: got 'envpool/{name}', expected another"
    if name == "VizdoomCustom-v1":
        return '.cfg" does not exist'  # It needs options.
    return "works"


@pytest.mark.parametrize(("family", "names"), list(chunks()))
def test_tasks_are_made_stepped_and_drawn(family, names, tmp_path):
    given = json.dumps([f"envpool/{name}" for name in names])
    done = subprocess.run(
        [sys.executable, "-c", CODE, given],
        capture_output=True,
        text=True,
        cwd=tmp_path,  # VizDoom writes a file there.
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    results = dict(map(json.loads, done.stdout.splitlines()))
    assert done.returncode == 0, (list(results.items())[-1:], done.stderr[-2000:])
    if family == "procgen" and "ImportError" in "".join(results.values()):
        pytest.skip("Qt 5 is not installed.")
    for name in names:
        assert expected(family, name) in results[f"envpool/{name}"]
