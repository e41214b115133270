"""Makes files that attack whoever reads them, and reads them as tfrl's users do.

`cases` lists them. `python -m tests.hostile_files` tries all, and prints a table.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import pickle
import shutil
import signal
import struct
import sys
import tempfile
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

LONGEST = 60  # Seconds until a reader counts as hanging, on a machine that is busy.
MOST_MEMORY = 1_000  # MB that reading one file may take.
_MARK = "EXECUTED"  # The file that code from a file would make.
RAISED = (FileNotFoundError, ValueError, RuntimeError, OSError, TypeError)


class Case(NamedTuple):
    """A file that attacks.

    Attributes:
      name: Its family and what it is, such as "run/config.json/pickle".
      make: Makes it in a folder, which is a copy of a run's for the family "run".
      read: Takes the folder, and reads it.
    """

    name: str
    make: Callable[[pathlib.Path], Any]
    read: Callable[[pathlib.Path], Any]

    @property
    def family(self) -> str:
        return self.name.partition("/")[0]


class Outcome(NamedTuple):
    """What reading a file did.

    Attributes:
      executed: Whether code from the file ran.
      seconds: How long it took.
      megabytes: The memory that it took at most.
      error: The error; None if the reader did without the file.
    """

    executed: bool
    seconds: float
    megabytes: float
    error: BaseException | None

    def fault(self) -> str | None:
        """Returns what is wrong; None if the file did no harm, and was told well."""
        if self.executed:
            return "code of the file ran"
        if isinstance(self.error, TimeoutError):
            return f"it did not end in {LONGEST} s"
        if self.megabytes > MOST_MEMORY:
            return f"it took {self.megabytes:.0f} MB"
        if self.error is not None and not isinstance(self.error, RAISED):
            return f"it raised {self.error!r}"
        if self.error is not None and not str(self.error).strip():
            return f"{type(self.error).__name__} has no text"
        return None


def try_case(case: Case, run: pathlib.Path, folder: pathlib.Path) -> Outcome:
    """Makes a case's file in a new folder, and reads it.

    Args:
      case: The case.
      run: A run's folder, which the family "run" copies.
      folder: The new folder; it becomes the working directory for the time.
    """
    place = folder / "given"
    if case.family == "run":
        shutil.copytree(run, place)
    else:
        place.mkdir(parents=True)
    before = os.getcwd()
    os.chdir(folder)
    case.make(place)
    error: BaseException | None = None
    start_memory, start = _reset_peak(), time.perf_counter()
    try:
        with (
            _limit(LONGEST),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            case.read(place)
    except (Exception, SystemExit) as raised:
        error = raised
    finally:
        os.chdir(before)
    seconds = time.perf_counter() - start
    megabytes = _memory("VmHWM") - start_memory
    executed = any(path.name == _MARK for path in folder.rglob("*"))
    return Outcome(executed, seconds, megabytes, error)


def make_run(folder: pathlib.Path) -> None:
    """Trains a small run, whose files the cases replace."""
    train(folder, 4)


def train(folder: pathlib.Path, num_iterations: int) -> None:
    """Trains a small run, or goes on with it."""
    import tfrl

    settings = {"initial_collect_steps": 10, "eval_interval": 2, **_SMALL}
    dqn = tfrl.DQN(
        "CartPole-v1", logdir=folder, num_iterations=num_iterations, **settings
    )
    dqn.learn(progress=False)


_SMALL: dict[str, Any] = {
    "jit_compile": False,
    "fc_layer_params": (8,),
    "replay_capacity": 100,
    "batch_size": 8,
    "num_eval_episodes": 1,
    "checkpoint_interval": 2,
}


class _Evil:
    """An object whose pickle makes a file when it is read."""

    def __reduce__(self) -> Any:
        return open, (_MARK, "w")


PICKLE = pickle.dumps(_Evil())


# Readers.


def _load(folder: pathlib.Path) -> None:
    import tfrl

    tfrl.load(folder)


def command(*words: str) -> Callable[[pathlib.Path], None]:
    """Returns a reader that runs a command on the folder."""

    def read(folder: pathlib.Path) -> None:
        from tfrl.algorithms import registry
        from tfrl.command import main

        errors, printed = io.StringIO(), io.StringIO()
        name, *rest = [word.replace("GIVEN", str(folder)) for word in words]
        takes_algorithm = name in ("train", "sweep")
        given = (registry.find(rest[0]), rest[1:]) if takes_algorithm else (rest,)
        try:
            with (
                contextlib.redirect_stderr(errors),
                contextlib.redirect_stdout(printed),
            ):
                main.find(name)(*given)
        except SystemExit as end:
            said = errors.getvalue()
            lines = [line for line in said.splitlines() if line.startswith("error: ")]
            if end.code not in (0, None):
                if len(lines) != 1 or "Traceback" in said:
                    raise AssertionError(f"the command said {said!r}") from None
                raise ValueError(lines[0]) from None
        finally:
            print(printed.getvalue(), errors.getvalue())

    return read


def _all(*readers: Callable[[pathlib.Path], None]) -> Callable[[pathlib.Path], None]:
    """Returns a reader that lets each read, and raises the worst error."""

    def read(folder: pathlib.Path) -> None:
        errors = []
        for reader in readers:
            try:
                reader(folder)
            except Exception as error:
                errors.append(error)
        errors.sort(key=lambda error: isinstance(error, RAISED))
        if errors:
            raise errors[0]

    return read


def _resume(folder: pathlib.Path) -> None:
    """Starts the program of the run again, which mends damaged policies."""
    train(folder, 4)


_EVALUATE = command("evaluate", "GIVEN", "--num_episodes=1")
_REPORT = command("report", "GIVEN")
_COMPARE = command("compare", "GIVEN", "GIVEN")


def _report_without_scripts(folder: pathlib.Path) -> None:
    _REPORT(folder)
    text = (folder / "report.html").read_text()
    if "<script>open" in text or "<img src=x" in text or "<!ENTITY" in text:
        raise AssertionError("the report has a script of the file")


def _initial_run(folder: pathlib.Path) -> None:
    import tfrl

    tfrl.DQN("CartPole-v1", initial_run=folder, **_SMALL).build()


def _nest(folder: pathlib.Path) -> None:
    from tfrl.savers import serialization

    serialization.from_bytes((folder / "nest").read_bytes())


def _recording(folder: pathlib.Path) -> None:
    from tfrl import datasets

    for _ in datasets.load_recordings(str(folder / "frames.tfrecord")).take(100):
        pass


def _minari(folder: pathlib.Path) -> None:
    from tfrl import datasets

    for _ in datasets.load_minari(folder / "main_data.hdf5").take(100):
        pass


def _replay(folder: pathlib.Path) -> None:
    from tfrl.replay_service.engine.checkpoints import checkpoint_files

    found = checkpoint_files.verified(folder / "2026-01-01T00-00-00.000000")
    checkpoint_files.read_meta(found)
    for path in found.glob("*.npy"):
        checkpoint_files.read_array(found, path.stem)


def _study(folder: pathlib.Path) -> None:
    from tfrl.experiments.tuning import study

    study.open_study(folder, None, None, 1)


# Files of a run.

_FILES = (
    *("config.json", "diagnostics.jsonl", "metrics.csv", "finished.json"),
    *("checkpoints/checkpoint", "checkpoints/ckpt-4.index"),
    "checkpoints/ckpt-4.data-00000-of-00001",
    *("policy/saved_model.pb", "policy/policy_specs.pbtxt", "policy/fingerprint.pb"),
    *("policy/distributions.json", "policy/variables/variables.index"),
    "policy/variables/variables.data-00000-of-00001",
)


def _npz_bomb(size: int = 2**30) -> bytes:
    """Returns an npz file of 5 MB whose array has more than `MOST_MEMORY`."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("nest.npy", "w", force_zip64=True) as member,
    ):
        member.write(_npy_header((size,), "|u1"))
        for _ in range(size >> 24):
            member.write(bytes(2**24))
    return file.getvalue()


def _npy_header(shape: Any, kind: str) -> bytes:
    file = io.BytesIO()
    fields = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, fields)
    return file.getvalue()


def _objects() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([_Evil()], object), allow_pickle=True)
    return file.getvalue()


def _replace(content: bytes) -> Callable[[pathlib.Path], None]:
    def make(path: pathlib.Path) -> None:
        path.unlink(missing_ok=True)
        path.write_bytes(content)

    return make


def _pipe(path: pathlib.Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link(target: str) -> Callable[[pathlib.Path], None]:
    def make(path: pathlib.Path) -> None:
        path.unlink()
        path.symlink_to(target)

    return make


def _directory(path: pathlib.Path) -> None:
    path.unlink()
    path.mkdir()


def _cut(path: pathlib.Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def _flip(path: pathlib.Path) -> None:
    content = bytearray(path.read_bytes())
    for i in range(0, len(content), max(len(content) // 9, 1)):
        content[i] ^= 0x55
    path.write_bytes(content)


_PAYLOADS: dict[str, Callable[[pathlib.Path], Any]] = {
    "pickle": _replace(PICKLE),
    "objects": _replace(_objects()),
    "empty": _replace(b""),
    "zeros": _replace(bytes(10_000)),
    "deep": _replace(b"[" * 100_000),
    "endless": _link("/dev/zero"),
    "pipe": _pipe,
    "directory": _directory,
    "cut": _cut,
    "flipped": _flip,
}


def _cases_of_files() -> Iterator[Case]:
    for name in _FILES:
        readers = {"checkpoints": (_load, _initial_run), "policy": (_EVALUATE, _resume)}
        others = (_load, _EVALUATE, _REPORT, _COMPARE)
        for payload, make in _PAYLOADS.items():
            yield Case(
                f"run/{name}/{payload}",
                lambda folder, name=name, make=make: make(folder / name),
                _all(*readers.get(name.partition("/")[0], others)),
            )


_SCRIPT = f"<script>open('{_MARK}')</script><img src=x onerror=alert(1)>"
_CONFIGS: dict[str, dict[str, Any]] = {
    "module": {"env": "strangers:CartPole-v1"},
    "module_deep": {"env": "strangers.inner:CartPole-v1"},
    "module_twice": {"env": "strangers:strangers:CartPole-v1"},
    "module_relative": {"env": ".strangers:CartPole-v1"},
    "module_path": {"env": "../strangers:CartPole-v1"},
    "module_system": {"env": "antigravity:CartPole-v1"},
    "module_empty": {"env": ":CartPole-v1"},
    "script": {"env": _SCRIPT},
    "terminal": {"env": "\x1b]0;owned\x07CartPole-v1"},
    "lines": {"env": "CartPole-v1\nerror: nothing is wrong"},
    "path": {"env": "../../../etc/passwd"},
    "env_number": {"env": 7},
    "env_list": {"env": ["CartPole-v1"]},
    "algorithm_module": {"algorithm": "os.system"},
    "algorithm_list": {"algorithm": ["dqn"]},
    "initial_run": {"initial_run": "../../../../etc"},
    "initial_run_number": {"initial_run": 3},
    "own_parts": {"own_parts": f"agent=__import__('os').mkdir('{_MARK}')"},
    "own_parts_list": {"own_parts": [1]},
    "layers": {"fc_layer_params": [10**9]},
    "layers_two": {"fc_layer_params": [200_000, 200_000]},
    "layers_text": {"fc_layer_params": "[100]"},
    "layers_negative": {"fc_layer_params": [-1]},
    "replay": {"replay_capacity": 10**11},
    "replay_overflow": {"replay_capacity": 2**70},
    "envs": {"num_envs": 10**9},
    "frames": {"frame_stack": 10**9},
    "batch": {"batch_size": 10**12},
    "bins": {"num_action_bins": 10**10},
    "iterations": {"num_iterations": 2**80},
    "iterations_text": {"num_iterations": "__import__('os')"},
    "rate_text": {"learning_rate": "1e-3"},
    "rate_infinite": {"learning_rate": float("inf")},
    "device": {"device": "/job:evil/task:0"},
    "activation": {"activation": "os.system"},
    "loss": {"loss": "eval"},
    "dtype": {"dtype": "object"},
    "replay_name": {"replay": "../pickle"},
    "emulator": {"emulator": "strangers:run"},
    "seed": {"seed": 10**400},
    "unknown": {"__class__": "os", "__reduce__": ["open", [_MARK, "w"]]},
    "long": {"activation": "a" * 10**7},
}


def _with_config(changed: dict[str, Any]) -> Callable[[pathlib.Path], None]:
    def make(folder: pathlib.Path) -> None:
        _write_module(folder.parent)
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changed))

    return make


def _write_module(folder: pathlib.Path) -> None:
    """Writes a module that makes a file when it is imported."""
    (folder / "strangers.py").write_text(f"open({_MARK!r}, 'w')\n")


def _cases_of_configurations() -> Iterator[Case]:
    readers = _all(_load, _EVALUATE, _report_without_scripts, _COMPARE)
    for name, changed in _CONFIGS.items():
        yield Case(f"run/config/{name}", _with_config(changed), readers)

    def as_flag(changed: dict[str, Any]) -> Callable[[pathlib.Path], None]:
        def make(folder: pathlib.Path) -> None:
            _write_module(folder.parent)
            (folder / "given.json").write_text(json.dumps(changed))

        return make

    train = command("train", "dqn", "--config=GIVEN/given.json", "--logdir=GIVEN/run")
    for name, changed in _CONFIGS.items():
        if name.startswith(("module", "algorithm", "script", "activation", "own")):
            yield Case(
                f"settings/{name}", as_flag({"num_iterations": 0} | changed), train
            )


def _cases_of_texts() -> Iterator[Case]:
    rows = {
        "script_column": f"iteration,{_SCRIPT}\n1,2\n",
        "formula": "iteration,evaluation_return\n=cmd|'/c calc'!A1,1\n",
        "entity": '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]>\n&b;\n',
        "wide": ",".join(map(str, range(200_000))) + "\n",
        "huge": "iteration,evaluation_return\n" + "9" * 10**6 + ",1\n",
        "quote": 'iteration,"' + "a" * 10**6,
    }
    readers = _all(_report_without_scripts, _COMPARE)
    for name, text in rows.items():
        make = _replace(text.encode())
        yield Case(
            f"run/metrics/{name}",
            lambda folder, make=make: make(folder / "metrics.csv"),
            readers,
        )
    lines: dict[str, Any] = {
        "script": {"iteration": 1, "loss": _SCRIPT, _SCRIPT: 1.0},
        "facts": {"iteration": 1, "environment": {"dead_actions": [_SCRIPT]}},
        "versions": {"iteration": 1, "versions": {"tfrl": _SCRIPT, _SCRIPT: "1"}},
        "huge": {"iteration": 10**30, "loss": 1e308},
        "class": {"iteration": 1, "loss": {"__class__": "os.system"}},
        "list": {"iteration": 1, "evaluation_returns": [[]] * 100_000},
    }
    for name, row in lines.items():
        make = _replace(json.dumps(row).encode() + b"\n")
        yield Case(
            f"run/diagnostics/{name}",
            lambda folder, make=make: make(folder / "diagnostics.jsonl"),
            _all(_load, readers),
        )


def _cases_of_graphs() -> Iterator[Case]:
    def save(path: pathlib.Path, weights: Any) -> None:
        """Replaces a policy by a SavedModel that writes a file when it is loaded."""
        import tensorflow as tf

        class Initializer(tf.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model_variables = weights

            @tf.function(input_signature=[])
            def action(self) -> Any:
                tf.io.write_file(_MARK, "x")
                return tf.constant(0)

        module: Any = Initializer()
        resource = _resource_that_writes(tf)
        module.resource = resource
        shutil.rmtree(path)
        tf.saved_model.save(module, str(path))

    readers = _all(_load, _EVALUATE, _initial_run, _resume)
    play = command("play", "GIVEN", "--num_episodes=1")
    record = command("record", "GIVEN", "--num_episodes=1", "--output=GIVEN/r")
    for name in ("policy", "final_policy"):
        yield Case(
            f"run/{name}/writes_a_file",
            lambda folder, name=name: save(folder / name, []),
            _all(readers, play, record),
        )

    def alone(folder: pathlib.Path) -> None:
        (folder / "policy").mkdir()
        save(folder / "policy", [])

    for reader in ("evaluate", "play", "record"):
        yield Case(
            f"policy/{reader}",
            alone,
            command(reader, "--policy=GIVEN/policy", "--env=CartPole-v1"),
        )


def _resource_that_writes(tf: Any) -> Any:
    """Returns a resource of a SavedModel whose initializer writes a file."""
    from tensorflow.python.trackable import resource

    class Writes(resource.TrackableResource):
        def _create_resource(self) -> Any:
            return tf.raw_ops.VarHandleOp(
                dtype=tf.float32, shape=[], shared_name="evil"
            )

        def _initialize(self) -> None:
            # While the module is saved the file would be written here.
            if tf.inside_function():
                tf.io.write_file(_MARK, "x")

    return Writes()


# Nests of arrays in checkpoints.


def _nest_of(archive: bytes) -> bytes:
    return b"tfrl nest 1\n" + archive


def _npz(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return file.getvalue()


def _array(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _tree(text: str, **members: bytes) -> bytes:
    words = np.frombuffer(text.encode(), np.uint8)
    return _nest_of(_npz(nest__npy=_array(words), **members))


def _cases_of_nests() -> Iterator[Case]:
    one = {"0__npy": _array(np.arange(3))}
    nests = {
        "pickle": lambda: PICKLE,
        "pickle_after_header": lambda: _nest_of(PICKLE),
        "objects": lambda: _tree('{"array": "0"}', **{"0__npy": _objects()}),
        "objects_as_nest": lambda: _nest_of(_npz(nest__npy=_objects())),
        "pickle_as_array": lambda: _tree('{"array": "0"}', **{"0__npy": PICKLE}),
        "bomb": lambda: _nest_of(_npz_bomb()),
        "header": lambda: _nest_of(_npz(nest__npy=_npy_header((10**11,), "|u1"))),
        "header_overflow": lambda: _nest_of(
            _npz(nest__npy=_npy_header((2**62, 8), "<f8"))
        ),
        "header_negative": lambda: _nest_of(_npz(nest__npy=_npy_header((-1,), "|u1"))),
        "header_code": lambda: _nest_of(
            _npz(nest__npy=b"\x93NUMPY\1\0\x40\0" + b"open('EXECUTED', 'w')".ljust(64))
        ),
        "header_long": lambda: _nest_of(
            _npz(nest__npy=b"\x93NUMPY\2\0\xff\xff\xff\x7f" + b"(" * 10_000)
        ),
        "void": lambda: _nest_of(_npz(nest__npy=_npy_header((), "|V999999999999"))),
        "deep": lambda: _tree('{"list": [' * 5_000 + "]}" * 5_000),
        "unknown": lambda: _tree('{"eval": "1"}'),
        "missing": lambda: _tree('{"array": "7"}', **one),
        "empty": lambda: _tree("{}"),
        "number": lambda: _tree('{"int": "0x%s"}' % ("f" * 10**6)),
        "shape": lambda: _tree('{"objects": [], "shape": [100000000000]}'),
        "dtype": lambda: _tree('{"array": "0", "dtype": "object"}', **one),
        "class": lambda: _tree(
            '{"namedtuple": [["f", "x"]], "name": "system", "module": "os"}'
        ),
        "class_code": lambda: _tree(
            '{"namedtuple": [["x):\\n open(\'EXECUTED\',\'w\')#", 1]], "name": "A b"}'
        ),
        "class_module": lambda: _tree(
            '{"namedtuple": [["x", 1]], "name": "A", "module": "strangers"}'
        ),
        "keys": lambda: _tree('{"dict": [[{"list": []}, 1]]}'),
        "path": lambda: _nest_of(_npz(**{"../../EXECUTED": b"x", "nest__npy": b"x"})),
        "overlap": lambda: _nest_of(_overlapping()),
        "cut": lambda: _tree('{"array": "0"}', **one)[:-30],
        "none": lambda: b"",
    }
    for name, content in nests.items():

        def make(folder: pathlib.Path, content: Any = content) -> None:
            _write_module(folder.parent)
            (folder / "nest").write_bytes(content())

        yield Case(f"nest/{name}", make, _nest)


def _overlapping() -> bytes:
    """Returns a zip file of 2,000 names that all lead to the same 10 MB."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("nest.npy", _array(np.zeros(10**7, np.uint8)))
        info = archive.infolist()[0]
        for i in range(2_000):
            copy = zipfile.ZipInfo(f"{i}.npy")
            for field in ("header_offset", "CRC", "compress_size", "file_size"):
                setattr(copy, field, getattr(info, field))
            archive.filelist.append(copy)
        archive._didModify = True  # type: ignore[attr-defined]
    return file.getvalue()


# Recorded data.


def _crc(content: bytes) -> int:
    """Returns the masked CRC-32C of TFRecord files."""
    value = 0xFFFFFFFF
    for byte in content:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return (((value >> 15) | (value << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _record(content: bytes, length: int | None = None) -> bytes:
    """Returns a record of a TFRecord file, with right checksums."""
    size = struct.pack("<Q", len(content) if length is None else length)
    head = size + struct.pack("<I", _crc(size))
    return head + content + struct.pack("<I", _crc(content))


def _cases_of_recordings() -> Iterator[Case]:
    def spec(shape: list[int] | None = None) -> bytes:
        import tensorflow as tf

        from tfrl.trajectories import trajectory
        from tfrl.utils import example_encoding_dataset

        leaf = tf.TensorSpec(shape or [2], tf.float32)
        frame = trajectory.Trajectory(*[leaf] * 7)
        path = pathlib.Path(tempfile.mkdtemp(), "spec")
        example_encoding_dataset.encode_spec_to_file(str(path), frame)
        return path.read_bytes()

    files: dict[str, Callable[[], tuple[bytes, bytes]]] = {
        "pickle": lambda: (PICKLE, spec()),
        "pickle_in_record": lambda: (_record(PICKLE), spec()),
        "pickle_as_spec": lambda: (_record(b""), PICKLE),
        "pickle_in_spec": lambda: (_record(b""), _record(PICKLE)),
        "length": lambda: (_record(b"x", 10**11), spec()),
        "length_overflow": lambda: (_record(b"x", 2**64 - 1), spec()),
        "spec_length": lambda: (_record(b"x"), _record(b"x", 10**11)),
        "shape": lambda: (_record(b""), spec([10**6, 10**6])),
        "empty_spec": lambda: (_record(b""), _record(b"")),
        "no_spec": lambda: (_record(b""), b""),
        "text": lambda: (b"{}" * 1000, spec()),
    }
    for name, content in files.items():

        def make(folder: pathlib.Path, content: Any = content) -> None:
            frames, of_spec = content()
            (folder / "frames.tfrecord").write_bytes(frames)
            (folder / "frames.tfrecord.spec").write_bytes(of_spec)

        yield Case(f"recording/{name}", make, _recording)


def _cases_of_minari() -> Iterator[Case]:
    names = ("observations", "actions", "rewards", "terminations", "truncations")

    def file_of(change: Callable[[Any], None]) -> Callable[[pathlib.Path], None]:
        def make(folder: pathlib.Path) -> None:
            import h5py

            with h5py.File(folder / "main_data.hdf5", "w") as file:
                episode = file.create_group("episode_0")
                for name in names:
                    size = 4 if name == "observations" else 3
                    episode[name] = np.zeros([size, 1], np.float32)[
                        :, 0 : None if name in names[:2] else 1
                    ].reshape([size, 1] if name in names[:2] else [size])
                change(episode)

        return make

    def replaced(**given: Any) -> Callable[[Any], None]:
        def change(episode: Any) -> None:
            import h5py

            for name, value in given.items():
                del episode[name]
                if callable(value):
                    value(episode, name, h5py)
                else:
                    episode[name] = value

        return change

    kinds: dict[str, Callable[[Any], None]] = {
        "external_link": replaced(
            rewards=lambda e, n, h: e.__setitem__(
                n, h.ExternalLink("/etc/passwd", "/x")
            )
        ),
        "external_device": replaced(
            rewards=lambda e, n, h: e.__setitem__(n, h.ExternalLink("/dev/zero", "/x"))
        ),
        "external_storage": replaced(
            rewards=lambda e, n, h: e.create_dataset(
                n, (3,), np.float32, external=[("/etc/passwd", 0, 12)]
            )
        ),
        "loop": replaced(
            observations=lambda e, n, h: e.__setitem__(n, h.SoftLink("/episode_0"))
        ),
        "own_link": replaced(
            observations=lambda e, n, h: e.__setitem__(
                n, h.SoftLink("/episode_0/observations")
            )
        ),
        "shape": replaced(
            rewards=lambda e, n, h: e.create_dataset(
                n, (10**11,), np.float32, chunks=(1024,)
            )
        ),
        "compressed": replaced(
            rewards=lambda e, n, h: e.create_dataset(
                n, (10**11,), np.float32, chunks=(2**20,), compression="gzip"
            )
        ),
        "text": replaced(rewards=["open('EXECUTED', 'w')"] * 3),
        "pickle": replaced(rewards=np.void(PICKLE)),
        "lengths": replaced(rewards=np.zeros(2)),
        "missing": lambda episode: episode.__delitem__("actions"),
    }
    for name, change in kinds.items():
        yield Case(f"minari/{name}", file_of(change), _minari)
    for name in ("pickle", "empty", "zeros", "deep"):
        payload = _PAYLOADS[name]
        yield Case(
            f"minari/file_{name}",
            lambda folder, payload=payload: payload(folder / "main_data.hdf5"),
            _minari,
        )


# Checkpoints of the replay service, and studies of a search.


def _cases_of_replay() -> Iterator[Case]:
    def checkpoint(
        files: dict[str, bytes], done: Any = None
    ) -> Callable[[pathlib.Path], None]:
        def make(folder: pathlib.Path) -> None:
            place = folder / "2026-01-01T00-00-00.000000"
            place.mkdir()
            whole = {"meta.json": b'{"format": 1}', **files}
            for name, content in whole.items():
                (place / name).write_bytes(content)
            sums = {name: [len(x), zlib.crc32(x)] for name, x in whole.items()}
            given = {"files": sums} if done is None else done
            text = given if isinstance(given, bytes) else json.dumps(given).encode()
            (place / "DONE").write_bytes(text)

        return make

    def with_pipe(folder: pathlib.Path) -> None:
        checkpoint({}, {"files": {"pipe": [0, 0]}})(folder)
        os.mkfifo(folder / "2026-01-01T00-00-00.000000" / "pipe")

    kinds: dict[str, Callable[[pathlib.Path], None]] = {
        "objects": checkpoint({"a.npy": _objects()}),
        "pickle": checkpoint({"a.npy": PICKLE}),
        "pickle_as_meta": checkpoint({"meta.json": PICKLE}),
        "pickle_as_done": checkpoint({}, PICKLE),
        "header": checkpoint({"a.npy": _npy_header((10**11,), "<f8")}),
        "endless": checkpoint({}, {"files": {"/dev/zero": [0, 0]}}),
        "path": checkpoint({}, {"files": {"../../../etc/passwd": [1, 1]}}),
        "pipe": with_pipe,
        "deep": checkpoint({}, b'{"files":' * 100_000),
        "deep_meta": checkpoint({"meta.json": b"[" * 100_000}),
        "list": checkpoint({"meta.json": b"[]"}),
        "no_format": checkpoint({"meta.json": b"{}"}),
        "sizes": checkpoint({}, {"files": {"a": [1e400, {}]}}),
    }
    for name, make in kinds.items():
        yield Case(f"replay/{name}", make, _replay)


def _cases_of_studies() -> Iterator[Case]:
    lines = {
        "pickle": PICKLE,
        "text": b"__import__('os').mkdir('EXECUTED')\n",
        "deep": b"[" * 100_000 + b"\n",
        "unknown": b'{"op_code": 999}\n',
        "list": b"[]\n",
    }
    for name, content in lines.items():
        make = _replace(content)
        yield Case(
            f"study/{name}",
            lambda folder, make=make: make(folder / "study.log"),
            _study,
        )


def cases() -> list[Case]:
    """Returns all cases."""
    return [
        *_cases_of_files(),
        *_cases_of_configurations(),
        *_cases_of_texts(),
        *_cases_of_graphs(),
        *_cases_of_nests(),
        *_cases_of_recordings(),
        *_cases_of_minari(),
        *_cases_of_replay(),
        *_cases_of_studies(),
    ]


@contextlib.contextmanager
def _limit(seconds: int) -> Iterator[None]:
    """Raises a TimeoutError in the block after some seconds."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _memory(field: str) -> float:
    """Returns a number of this process in MB."""
    text = pathlib.Path("/proc/self/status").read_text()
    return int(text.partition(f"{field}:")[2].split()[0]) / 1_000


def _reset_peak() -> float:
    """Begins to measure the peak of memory anew; returns what is in use."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def main(beginning: str = "") -> None:
    """Tries the cases whose names begin so; prints the faults, and a line a family."""
    counts: dict[str, Counter[str]] = {}
    slowest: dict[str, float] = {}
    most: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder, "run")
        make_run(run)
        chosen = [case for case in cases() if case.name.startswith(beginning)]
        for i, case in enumerate(chosen):
            outcome = try_case(case, run, pathlib.Path(folder, str(i)))
            fault, family = outcome.fault(), case.family
            count = counts.setdefault(family, Counter())
            count["files"] += 1
            count["executed"] += outcome.executed
            count["errors"] += outcome.error is not None
            count["faults"] += fault is not None
            slowest[family] = max(slowest.get(family, 0), outcome.seconds)
            most[family] = max(most.get(family, 0), outcome.megabytes)
            if fault:
                print(f"{case.name}: {fault}", flush=True)
    print("| Family | Files | Errors | Executed | Faults | Longest s | Most MB |")
    for family, count in counts.items():
        print(
            f"| {family} | {count['files']} | {count['errors']} | {count['executed']} "
            f"| {count['faults']} | {slowest[family]:.1f} | {most[family]:.0f} |"
        )
    print(f"{sum(count['files'] for count in counts.values())} files")


if __name__ == "__main__":
    main(*sys.argv[1:])
