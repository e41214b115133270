"""Programs that one process has compiled and another one loads."""

import copy
import json
import pickle

import pytest

from tests import forks
from tfrl.compilation import program_cache, program_store

# A script that calls parts and prints what they return. `kept` are the stored programs.
SCRIPT = '''
import json, os, pathlib, re, signal, struct, sys
import numpy as np
import tensorflow as tf
from tfrl.compilation import fast_function, program_cache, program_store
from tfrl.compilation.python_calls import host_calls

ROOT = pathlib.Path(os.environ["TFRL_CACHE_DIR"], "programs")
NUMBER = tf.TensorSpec([], tf.float32)

class Loop:
    """Computes with a variable, and calls Python."""

    def __init__(self, summand):
        self.summand, self.weights = summand, tf.Variable([1.0, 2.0])
        self.channel = host_calls.CallChannel()
        self.run = fast_function.fast_function(
            self._run, autograph=False, jit_compile=True
        )

    def _run(self, x):
        call = lambda x: [x + self.summand]
        for _ in range(2):
            x, = host_calls.host_call(call, [x], [NUMBER], self.channel)
        self.weights.assign(tf.sin(self.weights * x))
        return x

def run():
    loop = Loop(10)
    return [float(loop.run(tf.constant(1.0))), *loop.weights.numpy().tolist()]

@tf.function(jit_compile=True)
def users(x):
    return tf.cos(x) * 3

def call_users():
    return float(users(tf.constant(1.0)))

def after_others():
    tf.function(lambda: tf.constant(1))()
    class Other(Loop):
        pass
    others = [Other(1000 * i) for i in range(3)]
    return [float(other.run(tf.constant(1.0))) for other in others], run()

def change_flags():
    os.environ["XLA_FLAGS"] = "--xla_cpu_enable_fast_math=true"

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def flags():
    return os.environ.get("TF_XLA_FLAGS")

def addresses():
    """Returns what the stored programs contain of this process's addresses."""
    lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
    ranges = np.array([
        [int(x, 16) for x in line.split()[0].split("-")] for line in lines
    ], np.uint64)
    # Some builds of Python lie below, at the same place in each process, and there are
    # numbers of this size in any program.
    ranges = ranges[ranges[:, 0] >= 2**32]
    found = []
    for path in ROOT.glob("*/*.pb"):
        unescaped = lambda found: bytes([int(found[1], 8)])
        content = re.sub(rb"\\\\([0-7]{3})", unescaped, path.read_bytes())
        for start in range(8):
            end = start + (len(content) - start) // 8 * 8
            words = np.frombuffer(content[start:end], np.uint64)
            place = np.searchsorted(ranges[:, 0], words, "right") - 1
            inside = (place >= 0) & (words < ranges[np.maximum(place, 0), 1])
            found += words[inside].tolist()
    return found

results = {}
for name in sys.argv[1:]:
    results[name] = globals()[name]()
results["kept"] = program_store.usage(ROOT).number
print(json.dumps(results))
'''


class Processes:
    """Forks of one process that has imported tfrl, and share an empty cache."""

    def __init__(self, folder, started, script):
        self.root = folder / "programs"
        self._started = started
        self._script = script

    def run(self, *parts):
        ended = self._started.run(str(self._script), *parts)
        assert ended.code == 0, ended.errors
        return json.loads(ended.output), ended.errors

    def number(self):
        return program_store.usage(self.root).number


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    script = folder / "script.py"
    script.write_text(SCRIPT)
    cache = folder / "cache"
    made = forks.Forks(
        folder,
        "import tfrl\nimport tensorflow",
        TFRL_CACHE_DIR=str(cache),
        TF_CPP_MIN_LOG_LEVEL="2",  # Shows TensorFlow's errors.
    )
    yield Processes(cache, made, script)
    made.close()


@pytest.fixture
def processes(started):
    program_store.empty(started.root)
    return started


def test_another_process_loads_a_program_with_the_same_bits(processes):
    first, errors = processes.run("run")
    assert errors == ""
    second, errors = processes.run("run")
    assert errors == ""  # TensorFlow can read what is stored.
    assert first["run"][0] == 21
    assert (first["kept"], second["kept"]) == (1, 1)
    assert first["run"] == second["run"]


def test_a_program_calls_the_right_function_after_other_registrations(processes):
    first, _ = processes.run("run")
    second, _ = processes.run("after_others")
    others, result = second["after_others"]
    assert others == [1, 2001, 4001]
    assert result == first["run"]
    assert second["kept"] == first["kept"] + 3  # The others' programs, not this one.


def test_a_program_contains_no_address_of_its_process(processes):
    found, _ = processes.run("run", "call_users", "addresses")
    assert (found["kept"], found["addresses"]) == (1, [])


def test_users_functions_are_kept_at_the_end_and_loaded(processes):
    first, _ = processes.run("call_users")
    assert (first["kept"], processes.number()) == (0, 1)
    second, _ = processes.run("call_users")
    assert (second["call_users"], processes.number()) == (first["call_users"], 1)


def test_a_damaged_program_is_deleted_and_compiled_again(processes):
    first, _ = processes.run("run")
    (path,) = processes.root.glob("*/*.pb")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    second, errors = processes.run("run")
    assert second == first
    assert f"deleted {path}, which was damaged" in errors
    assert processes.run("run") == (first, "")


def test_a_process_that_is_killed_has_kept_what_it_compiled(processes):
    with pytest.raises(AssertionError):
        processes.run("run", "kill")
    assert processes.number() == 1


def test_flags_that_change_after_the_import_end_the_use_of_the_cache(processes):
    processes.run("run", "call_users")
    before = processes.number()
    processes.run("change_flags", "call_users")  # Of another kind from the start.
    assert processes.number() == before + 1
    processes.run("run", "change_flags", "call_users", "after_others")
    assert processes.number() == before + 1


def test_other_programs_do_not_see_the_flags(processes):
    assert processes.run("flags")[0]["flags"] is None


def test_copies_of_names_are_other_names():
    names = program_cache.ProgramNames("of a copy")
    with names.used():
        numbers = {names.next_number()}
        for twin in (copy.deepcopy(names), pickle.loads(pickle.dumps(names))):
            numbers.add(twin.next_number())
    assert len(numbers) == 3
