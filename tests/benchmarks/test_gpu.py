"""Training on a device beside the CPU: what is compared, and that it runs."""

import subprocess
import sys
import types

import pytest

from benchmarks import gpu, processes
from tests.forks import ENVIRONMENT, REPOSITORY


@pytest.mark.parametrize("quick", [False, True])
def test_a_device_is_compared_with_the_cpu_in_the_same_form(quick):
    for group in gpu.groups("GPU:1", quick):
        on_device, on_cpu = (
            {
                contender.label.removeprefix(f"{place}, "): contender
                for contender in group.contenders
                if contender.settings["device"] == place
            }
            for place in ("GPU:1", "CPU:0")
        )
        assert len(on_device) + len(on_cpu) == len(group.contenders)
        assert on_cpu.keys() <= on_device.keys()
        assert group.references == tuple(f"CPU:0, {form}" for form in on_cpu)
        for form, contender in on_cpu.items():
            same = on_device[form]
            assert same.task == contender.task
            assert {**same.settings, "device": "CPU:0"} == contender.settings


def test_without_a_device_the_cpu_is_alone():
    for group in gpu.groups(None, quick=False):
        assert {c.settings["device"] for c in group.contenders} == {"CPU:0"}


def test_the_device_is_seen_by_its_worker_alone(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    hidden = {}
    for name in ("tfrl_device", "tfrl_cpu"):
        system = processes.SYSTEMS[name]
        variables = processes.environment_variables(
            system.variables, system.one_thread, sees_gpus=system.sees_gpus
        )
        hidden[name] = variables.get("CUDA_VISIBLE_DEVICES")
    assert hidden == {"tfrl_device": None, "tfrl_cpu": ""}


@pytest.mark.parametrize(
    ("seen", "given", "compared"),
    [
        ("none", None, None),
        ("A GPU", None, "GPU:0"),
        ("A GPU; A GPU", "GPU:1", "GPU:1"),
        ("A GPU", "CPU:0", None),
    ],
)
def test_the_first_gpu_is_taken_if_there_is_one(seen, given, compared, monkeypatch):
    said, devices = [], []
    monkeypatch.setattr(gpu, "groups", lambda device, quick: devices.append(device))
    versions = {"GPU": seen, "processor": "A processor", "tensorflow": "2.0"}
    worker = types.SimpleNamespace(versions=versions)
    gpu.run(
        types.SimpleNamespace(
            pool=types.SimpleNamespace(get=lambda name: worker),
            device=given,
            quick=True,
            say=said.append,
            measure=lambda name, groups: None,
        )
    )
    assert devices == [compared]
    assert f"GPU: {seen}; CPU: A processor; TensorFlow 2.0" in said[0]
    assert any("no GPU" in line for line in said) == (seen == "none")


# Eight programs, of which four are compiled.
@pytest.mark.slow
def test_it_runs_to_its_end_without_a_gpu(tmp_path):
    process = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks", "gpu", "--quick", "--rounds=1"),
            f"--output={tmp_path}",
        ],
        cwd=REPOSITORY,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    assert "TensorFlow sees no GPU" in process.stdout
    for failure in ("not measured", "failed:"):
        assert failure not in process.stdout
    rows = [row for row in process.stdout.splitlines() if row.startswith("CPU:0, ")]
    assert len(rows) == 8
