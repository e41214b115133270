"""Loops whose agent is on another device than the CPU that calls Python.

Nearly all are slow: a script of many loops gives their results.
"""

import functools
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import tensorflow as tf

from tfrl import train
from tfrl.train.loops import placement

SCRIPT = pathlib.Path(__file__).parent / "scripts" / "two_devices.py"
ROOT = SCRIPT.parents[4]
# These hand values on, from wherever they are, and compute nothing.
CONTROL_FLOW = {"Enter", "Exit", "Identity", "Merge", "NextIteration", "Switch"}
# What the script does in its second part.
SLOW = {
    "dqn dataset on the host",
    "dqn native",
    "dqn plain without copies",
    "dqn prioritized",
    "noisy compiled",
    "noisy plain",
    "ppo plain",
    "td3 plain",
    "sac compiled",
    "reinforce compiled",
    "reinforce plain",
    "ppo compiled",
    "sweep",
}
SPLIT = [
    "dqn plain",
    "dqn plain without copies",
    "dqn compiled",
    "dqn prioritized",
    "dqn dataset on the host",
    "noisy plain",
    "noisy compiled",
    "td3 plain",
    "sac compiled",
    "reinforce plain",
    "reinforce compiled",
    "ppo plain",
    "ppo compiled",
]


def cases(*names):
    return pytest.mark.parametrize("case", names)


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What the script prints, and what TensorFlow logs of an operation's device.

    A function of the script's part, which it runs once.
    """
    log = tmp_path_factory.mktemp("placement") / "log"

    @functools.cache
    def run_part(part):
        result = subprocess.run(
            [sys.executable, str(SCRIPT), part, str(log)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            # What is compared is compiled alike: neither needs LLVM's optimizations,
            # which take a fifth of all the time.
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "TF_CPP_MIN_LOG_LEVEL": "0",
                "XLA_FLAGS": "--xla_backend_optimization_level=0",
            },
        )
        written = log.read_text() if log.exists() else ""
        assert result.returncode == 0, result.stderr[-3000:] + written[-3000:]
        return result.stdout, written

    return run_part


@pytest.fixture(scope="module")
def results(printed):
    """What the script found: a function of the case."""

    @functools.cache
    def found(part):
        return json.loads(printed(part)[0].splitlines()[-1])

    return lambda case: found("slow" if case in SLOW else "fast")[case]


@pytest.mark.slow
@cases(*SPLIT, "dqn native")
def test_results_are_those_of_one_device(results, case):
    # Most of these are compared with plain loops, which round otherwise.
    rounds = case in (
        "ppo compiled",
        "reinforce compiled",
        "sac compiled",
        "noisy compiled",
        "noisy plain",
    )
    assert results(case)["difference"] <= (1e-5 if rounds else 0)
    assert results(case)["same_counts"]
    assert results(case)["train_steps"] > 0


@pytest.mark.slow
@cases(*SPLIT, "dqn native")
def test_a_loop_is_traced_once(results, case):
    assert results(case)["traces"] == 1


@pytest.mark.slow
@cases("dqn compiled", "reinforce compiled", "ppo compiled", "sac compiled")
def test_a_python_environment_does_not_keep_auto_from_compiling(results, case):
    assert results(case)["compiled"]
    assert not results("dqn plain")["compiled"]


@pytest.mark.slow
@cases(*SPLIT)
def test_the_agents_variables_are_on_its_device_and_the_loops_on_the_host(
    results, case
):
    assert results(case)["agent_devices"] == ["CPU:1"]
    assert results(case)["loop_devices"] == ["CPU:0"]


@pytest.mark.slow
def test_a_native_environment_and_its_loop_are_on_the_agents_device(results):
    native = results("dqn native")
    assert native["agent_devices"] == native["loop_devices"] == ["CPU:1"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_a_restored_loop_goes_on_bit_for_bit(results, kind):
    assert results(f"resumed {kind}") == 0.0


@pytest.mark.slow
def test_the_program_on_the_host_calls_a_host_observer(results):
    seen, stored = results("seen by a host observer")
    assert seen == stored > 3


@pytest.mark.slow
def test_a_sweep_runs_on_the_agents_device(results):
    # Each of its runs is the loop alone, but for rounding.
    assert max(results("sweep")) < 1e-4


@pytest.mark.slow
def test_every_operation_runs_on_the_device_of_its_program(printed):
    # Calls of the host's and of the device's program in the body of the call's loop.
    line = re.compile(
        r"while/body/_\d+/while/(StatefulPartitionedCall(?:_1)?)/(\S+): "
        r"\((\w+)\): \S+/device:(CPU:\d)"
    )
    _, logged = printed("fast")[1].split("The initial collection is done.")
    placed = {"StatefulPartitionedCall": {}, "StatefulPartitionedCall_1": {}}
    for program, _, kind, device in line.findall(logged):
        if kind not in CONTROL_FLOW:
            placed[program].setdefault(kind, set()).add(device)
    host, device = placed.values()
    assert {"PyFunc", "MatMul"} <= set(host)
    assert {"ResourceApplyAdam", "ResourceStridedSliceAssign", "MatMul"} <= set(device)
    assert {place for places in host.values() for place in places} == {"CPU:0"}
    assert {place for places in device.values() for place in places} == {"CPU:1"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "text"),
    [
        ("unknown device", r"device: got 'GPU:7', expected one of \['/device:CPU:0'"),
        ("dataset", "sampling: got 'dataset' with a replay buffer on /device:CPU:1"),
        (
            "buffer",
            r"True for a replay buffer with the variable TFUniformReplayBuffer/\S+:0 "
            r"on /device:CPU:0, expected it on /device:CPU:1, .*; make it inside of "
            r"tf\.device\('/device:CPU:1'\); or leave jit_compile=False\.",
        ),
        (
            "environment",
            "True for an environment with the variable .* on /device:CPU:0",
        ),
        ("observer", "True for an observer with the variable env.* on /device:CPU:1, "),
        (
            "normalizer",
            "True for an observation_normalizer with the variable .*:0 on /device:CPU:0"
            ", expected it on /device:CPU:1, ",
        ),
        (
            "int32",
            "True for an observer with the variable first_steps:0 on /device:CPU:0, .*"
            "another dtype, such as int64, because TensorFlow has no .* int32 on a GPU",
        ),
        (
            "no part's",
            r"program on /device:CPU:1 uses the variable rate \(.*two_devices.*\) on "
            r"/device:CPU:0, .*; make this one inside of tf\.device\('/device:CPU:1'\)",
        ),
        ("host observer", "True for a host_observer, expected observers in TensorFlow"),
        (
            "schedule",
            "uses Variable:0 on /device:CPU:1, expected variables on the host",
        ),
    ],
)
def test_what_cannot_be_reached_is_an_error(results, case, text):
    assert re.search(text, results("errors")[case])


@pytest.mark.slow
def test_auto_warns_once_of_a_loop_that_is_not_compiled(results):
    found = results("warnings")
    for case, name in (("observer", "environment_steps"), ("int32", "first_steps")):
        (text,) = found[case]
        assert text.startswith(
            f"jit_compile: 'auto' does not compile this loop: got an observer with the "
            f"variable {name}:0 on "
        )
    assert found["nothing"] == found["plain"] == found["adafactor"] == []


@pytest.mark.slow
@pytest.mark.parametrize("case", ["observer and schedule, plain", "observer, auto"])
def test_a_plain_loop_takes_variables_on_any_device(results, case):
    assert results("errors")[case] is None


def test_the_scope_of_no_device_leaves_the_choice_to_tensorflow():
    with train.device_scope(""):
        chosen = tf.Variable(1.0)
    assert chosen.device == tf.Variable(1.0).device


def test_the_device_of_no_variables_is_the_host():
    assert placement.device_of([]) == placement.host() == "/device:CPU:0"


def test_weights_are_copied_in_the_agents_order(monkeypatch):
    # In TensorFlow's order, which is a set's, each process compiles another program.
    weights = [tf.Variable(float(i)) for i in range(9)]
    monkeypatch.setattr(placement, "device_of", lambda values: "elsewhere")
    program = placement.HostProgram(
        lambda: tf.stack([weight + 0.0 for weight in reversed(weights)]),
        lambda: weights,
        jit_compile=True,
    )
    copied = []
    identity = tf.identity
    monkeypatch.setattr(tf, "identity", lambda v: copied.append(v) or identity(v))
    assert tf.function(program)().numpy().tolist() == [*range(8, -1, -1)]
    assert all(a is b for a, b in zip(copied, weights, strict=True))


@pytest.mark.parametrize(
    ("device", "is_split", "said"),
    [
        ("/device:GPU:0", False, "Agent and environment run on GPU:0."),
        (
            "/device:GPU:0",
            True,
            "The agent trains on GPU:0. The environment is in Python, so CPU:0 steps "
            "it, with a copy of the policy.",
        ),
        ("/device:CPU:0", False, "Agent and environment run on CPU:0."),
    ],
)
def test_the_devices_are_told_where_there_is_a_choice(
    monkeypatch, device, is_split, said
):
    placed = placement.Placement(device, is_split)
    devices = [
        tf.config.LogicalDevice(f"/device:{kind}:0", kind) for kind in ("CPU", "GPU")
    ]
    monkeypatch.setattr(
        tf.config,
        "list_logical_devices",
        lambda kind=None: [d for d in devices if kind in (None, d.device_type)],
    )
    assert placed.describe() == said
    if device == placement.host():
        del devices[1]
        assert placed.describe() == ""
