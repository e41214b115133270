"""Makes folders of runs whose links lead to the user's own files, and uses them.

`cases` lists them. `python -m tests.hostile_folders` tries all, and prints a table.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests import hostile_files
from tests.forks import REPOSITORY

_SECRET = "the user's own\n"
# Events of Linux's inotify: read, written, its rights, moved, made, deleted, opened.
_WATCHED = 0x1 | 0x2 | 0x4 | 0x40 | 0x80 | 0x100 | 0x200 | 0x20
_LIBC = ctypes.CDLL(None)


class Case(NamedTuple):
    """A folder, and what a user does with it.

    Attributes:
      name: Such as "export/agent.mp4/file".
      make: Makes it from a copy of a run's folder, and the user's home beside it.
      use: Takes the folder.
    """

    name: str
    make: Callable[[pathlib.Path, pathlib.Path], Any]
    use: Callable[[pathlib.Path], Any]


class Outcome(NamedTuple):
    """What a user's command did.

    Attributes:
      touched: The names of files of the user's own that were opened or changed.
      changed: The bytes that were written to them, or that they have lost.
      sent: The bytes of them that were uploaded.
      error: The error; None if there was none.
      said: What was printed.
    """

    touched: list[str]
    changed: int
    sent: int
    error: BaseException | None
    said: str

    def fault(self) -> str | None:
        """Returns what is wrong; None if nothing outside of the folder was used."""
        if self.changed or self.touched or self.sent:
            return f"{self.changed} bytes changed, {self.sent} sent, {self.touched}"
        if self.error is not None and not isinstance(self.error, hostile_files.RAISED):
            return f"it raised {self.error!r}"
        if self.error is not None and not str(self.error).strip():
            return f"{type(self.error).__name__} has no text"
        if "\x1b" in self.said or "Traceback" in self.said:
            return f"it said {self.said!r}"
        return None


def try_case(case: Case, run: pathlib.Path, folder: pathlib.Path) -> Outcome:
    """Makes a case's folder in a new one, and uses it.

    Args:
      case: The case.
      run: The folder of a run, which is copied.
      folder: The new folder; it becomes the working directory for the time.
    """
    place, home = folder / "given", folder / "home"
    shutil.copytree(run, place, symlinks=True)
    (home / "folder").mkdir(parents=True)
    (home / "own").write_text(_SECRET)
    case.make(place, home)
    before, here = _content(home), os.getcwd()
    said = io.StringIO()
    error: BaseException | None = None
    os.chdir(folder)
    _SENT.clear()
    try:
        with (
            _watching(home) as touched,
            contextlib.redirect_stderr(said),
            contextlib.redirect_stdout(said),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            case.use(place)
    except (Exception, SystemExit) as raised:
        error = raised
    finally:
        os.chdir(here)
    after = _content(home)
    changed = sum(
        max(len(before.get(x, b"")), len(after.get(x, b"")), 1)
        for x in before.keys() | after.keys()
        if before.get(x) != after.get(x)
    )
    return Outcome(touched, changed, sum(map(len, _SENT)), error, said.getvalue())


def _content(folder: pathlib.Path) -> dict[str, bytes]:
    """Returns the bytes of the files of a folder; a folder has none."""
    return {
        str(path.relative_to(folder)): b"" if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
    }


@contextlib.contextmanager
def _watching(folder: pathlib.Path) -> Iterator[list[str]]:
    """Yields a list of what was opened or changed in a folder, filled at the end."""
    found: list[str] = []
    descriptor = _LIBC.inotify_init1(os.O_NONBLOCK)
    for place in (folder, *(x for x in folder.rglob("*") if x.is_dir())):
        _LIBC.inotify_add_watch(descriptor, os.fsencode(place), _WATCHED)
    try:
        yield found
    finally:
        with contextlib.suppress(BlockingIOError):
            while data := os.read(descriptor, 2**16):
                while data:
                    _, mask, _, size = struct.unpack_from("iIII", data)
                    name = data[16 : 16 + size].rstrip(b"\0").decode()
                    found.append(f"{name or 'a folder'}: {mask:#x}")
                    data = data[16 + size :]
        os.close(descriptor)


# What a folder is used for.


def _command(*words: str) -> Callable[[pathlib.Path], None]:
    return hostile_files.command(*words)


def _train_on(folder: pathlib.Path) -> None:
    """Makes the run longer, which writes all of its files."""
    hostile_files.train(folder, 6)


_SENT: list[bytes] = []


class _Hub:
    """Huggingface's client, which reads the files that it would send."""

    def create_repo(self, *_: Any, **__: Any) -> str:
        return "https://hub/\x1b[2J"

    def upload_folder(self, folder_path: str, **_: Any) -> None:
        files = [x for x in pathlib.Path(folder_path).rglob("*") if x.is_file()]
        contents = [file.read_bytes() for file in files]
        _SENT.extend(x for x in contents if x == _SECRET.encode())


def _push(folder: pathlib.Path) -> None:
    module: Any = types.ModuleType("huggingface_hub")
    module.HfApi, module.__spec__ = _Hub, types.SimpleNamespace(name="huggingface_hub")
    before = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    try:
        _command("push", "GIVEN", "--repo=me/policy")(folder)
    finally:
        del sys.modules[module.__name__]
        if before is not None:
            sys.modules[module.__name__] = before


def _sweep(*words: str) -> Callable[[pathlib.Path], None]:
    def use(folder: pathlib.Path) -> None:
        for path in (*folder.glob("*.json*"), *folder.glob("metrics.csv")):
            path.unlink()  # A sweep's folder has none.
        settings = ("--num_iterations=4", "--replay_capacity=100", "--seeds=0,1")
        short = ("--initial_collect_steps=10", "--eval_interval=2", "--batch_size=8")
        _command("sweep", "dqn", "--logdir=GIVEN", *settings, *short, *words)(folder)

    return use


def _tune(folder: pathlib.Path) -> None:
    import tfrl

    tfrl.tune("dqn", trials=1, num_evaluations=1, logdir=folder / "new")


def _replay(folder: pathlib.Path) -> None:
    from tfrl.replay_service.engine.checkpoints import checkpoint_files

    found = checkpoint_files.latest(folder / "replay")
    assert found is not None
    checkpoint_files.read_array(found, "numbers")


def _inside(*words: str) -> Callable[[pathlib.Path], None]:
    """Returns a use of the installed command in the folder itself."""

    def use(folder: pathlib.Path) -> None:
        code = "from tfrl.command import main; main.main()"
        done = subprocess.run(
            # As the script `tfrl`, which does not import from the working directory.
            [sys.executable, "-P", "-c", code, *words],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), "HOME": str(folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        print(done.stdout, done.stderr)
        if done.returncode:
            raise ValueError(done.stderr)

    return use


# Folders.

Make = Callable[[pathlib.Path, pathlib.Path], None]


def _link(name: str, kind: str) -> Make:
    """Returns a function that puts a link in the place of a file or a folder.

    Args:
      name: The place.
      kind: What it leads to: "file", which has the content of the place, "missing",
        "folder", or "hard" for a second name of the file.
    """

    def make(folder: pathlib.Path, home: pathlib.Path) -> None:
        place, target = folder / name, home / kind
        place.parent.mkdir(parents=True, exist_ok=True)
        if kind in ("file", "hard"):
            target = home / "own"
            if place.exists():
                place.replace(target)
        elif kind == "folder" and place.exists():
            target.rmdir()
            place.rename(target)
        elif place.exists():
            place.unlink()
        if kind == "hard":
            os.link(target, place)
        else:
            place.symlink_to(target)

    return make


def _config(**changed: Any) -> Make:
    def make(folder: pathlib.Path, home: pathlib.Path) -> None:
        path = folder / "config.json"
        given = {
            key: x.replace("HOME", str(home)) if isinstance(x, str) else x
            for key, x in changed.items()
        }
        path.write_text(json.dumps(json.loads(path.read_text()) | given))

    return make


def _foreign_checkpoints(folder: pathlib.Path, home: pathlib.Path) -> None:
    """Names checkpoints of another run as the oldest, which are deleted first."""
    numbers = range(100, 150)  # More than are kept.
    for number in numbers:
        for ending in ("index", "data-00000-of-00001"):
            (home / "folder" / f"ckpt-{number}.{ending}").write_text(_SECRET)
    state = folder / "checkpoints" / "checkpoint"
    places = (f"{home}/folder", "../../home/folder")
    names = [f"{place}/ckpt-{x}" for x in numbers for place in places]
    names.append("ckpt-4")
    lines = [f'all_model_checkpoint_paths: "{name}"' for name in names]
    times = [f"all_model_checkpoint_timestamps: {i}" for i in range(len(names))]
    state.write_text("\n".join(['model_checkpoint_path: "ckpt-4"', *lines, *times]))


def _replay_checkpoint(name: str) -> Make:
    def make(folder: pathlib.Path, home: pathlib.Path) -> None:
        import numpy as np

        from tfrl.replay_service.engine.checkpoints import checkpoint_files

        with checkpoint_files.CheckpointWriter(folder / "replay") as writer:
            writer.add_array("numbers", np.arange(3))
            made = pathlib.Path(writer.finish({}))
        kind = "file" if name else "folder"
        _link(str((made / name).relative_to(folder)), kind)(folder, home)

    return make


def _modules(folder: pathlib.Path, home: pathlib.Path) -> None:
    """Puts modules with the names of common ones into the folder."""
    del home
    code = "open('../home/EXECUTED', 'w').write('x')\n"
    for name in ("pathlib", "tfrl", "tensorflow", "json", "re", "os", "encodings"):
        (folder / f"{name}.py").write_text(code)


def _commands(name: str) -> Make:
    """Returns a function that puts commands for the terminal into a text."""

    def make(folder: pathlib.Path, home: pathlib.Path) -> None:
        del home
        path, evil = folder / name, "\x1b]0;owned\x07\x9b2J"
        if name == "config.json":
            config = json.loads(path.read_text())
            path.write_text(json.dumps({**config, evil: evil, "algorithm": evil}))
        elif name == "lock":
            path.write_text(json.dumps({"pid": evil, "host": evil, "since": evil}))
        else:
            row = {"iteration": 0, evil: evil, "versions": {"processor": evil}}
            path.write_text(json.dumps(row) + "\n")

    return make


_EXPORT = _command("export", "GIVEN", "--format=numpy")
_REPORT = _command("report", "GIVEN")
_PLAY = _command("play", "GIVEN", "--num_episodes=1")
_EVALUATE = _command("evaluate", "GIVEN", "--num_episodes=1")
_COMPARE = _command("compare", "GIVEN", "--out=GIVEN/compared")
_VERIFY = _command("verify", "GIVEN")
_RECORD = _command(
    "record", "GIVEN", "--num_episodes=1", "--output=GIVEN/film.tfrecord"
)
# By what the folder is used for: the places of links, and what they lead to.
_LINKS: dict[str, tuple[Callable[[pathlib.Path], Any], list[str]]] = {
    "export": (
        _EXPORT,
        [
            *("export/agent.mp4 file", "export/agent.mp4 missing"),
            *("export/curve.svg file", "export/README.md missing", "export folder"),
            *("export/policy.py file", "export/policy.npz missing", "agent.mp4 file"),
            *("export/README.md file", "export/inner folder", "policy folder"),
        ],
    ),
    "report": (
        _REPORT,
        [
            *("report.html file", ".report.html.tmp file", "report.html missing"),
            *("agent.mp4 file", "config.json file", "diagnostics.jsonl file"),
            "report.html hard",
        ],
    ),
    "compare": (
        _COMPARE,
        [
            *("metrics.csv file", "compared/compare.md file", "config.json file"),
            *("compared/compare.csv missing", "compared/compare.png file"),
        ],
    ),
    "play": (
        _PLAY,
        ["play.mp4 file", ".play.mp4.tmp.mp4 file", "policy/variables folder"],
    ),
    "evaluate": (_EVALUATE, ["policy/variables/variables.index file"]),
    "record": (
        _RECORD,
        [".film.tfrecord.unfinished file", ".film.tfrecord.unfinished.spec missing"],
    ),
    "resume": (
        _train_on,
        [
            *("metrics.csv file", "metrics.csv.new file", "metrics.csv hard"),
            *("diagnostics.jsonl file", "diagnostics.tmp file", "lock file"),
            *("diagnostics.jsonl hard", "lock missing", "lock hard"),
            *("config.json.tmp file", "finished.json.tmp file", "finished.json file"),
            *("stopped.json.tmp file", "learning_curve.png file", "agent.mp4 file"),
            *(".learning_curve.png.tmp.png file", ".agent.mp4.tmp.mp4 file"),
            *("policy.new folder", "final_policy.new folder", "policy.old folder"),
            *("policy folder", "final_policy folder", "tensorboard folder"),
            *("checkpoints folder", "checkpoints/ckpt-6_temp folder"),
            *("checkpoints/checkpoint file", "checkpoints/ckpt-4.index file"),
            *("report.html file", "tensorboard/events file"),
        ],
    ),
    "push": (
        _push,
        ["export/notes.txt file", "export/inner folder", "export folder"],
    ),
    "sweep": (
        _sweep("--env=CartPole-v1"),
        ["runs folder", "programs folder", "compare.md file", "runs/seed_0 folder"],
    ),
    "sweep in processes": (
        _sweep("--env=Taxi-v4", "--processes=1"),
        ["runs/seed_0/output.txt file", "runs/seed_0/recipe.json file"],
    ),
    "tune": (_tune, ["new/study.log file", "new/lock file", "new/runs folder"]),
}


def cases() -> list[Case]:
    """Returns all cases."""
    found = []
    for family, (use, places) in _LINKS.items():
        for place, kind in map(str.split, places):
            name = f"{family}/{place}/{kind}"
            found.append(Case(name, _with_export(family, _link(place, kind)), use))
    return [
        *found,
        Case("resume/foreign_checkpoints", _foreign_checkpoints, _train_on),
        Case("replay/array", _replay_checkpoint("numbers.npy"), _replay),
        Case("replay/DONE", _replay_checkpoint("DONE"), _replay),
        Case("replay/folder", _replay_checkpoint(""), _replay),
        Case("verify/initial_run", _config(initial_run="HOME/folder"), _VERIFY),
        Case("verify/data", _config(algorithm="iql", data="HOME/own"), _VERIFY),
        Case("verify/long", _config(num_iterations=2**60), _VERIFY),
        Case("verify/setting", _config(batch_size=0), _VERIFY),
        Case("verify/loss", _config(loss="eval"), _VERIFY),
        Case("inside/report", _modules, _inside("report", ".")),
        Case("inside/litert", _modules, _inside("export", ".", "--format=litert")),
        *(
            Case(f"{family}/terminal/{name}", _commands(name), use)
            for name, family, use in (
                ("config.json", "report", _REPORT),
                ("config.json", "compare", _COMPARE),
                ("config.json", "verify", _VERIFY),
                ("diagnostics.jsonl", "report", _REPORT),
                ("lock", "resume", _train_on),
            )
        ),
        Case("push/terminal", _with_export("push", lambda *_: None), _push),
    ]


def _with_export(family: str, make: Make) -> Make:
    """Makes a model card first, which a push needs."""

    def whole(folder: pathlib.Path, home: pathlib.Path) -> None:
        if family == "push":
            (folder / "export").mkdir()
            (folder / "export" / "README.md").write_text("---\nlibrary_name: tfrl\n")
        make(folder, home)

    return whole


def main(beginning: str = "") -> None:
    """Tries the cases whose names begin so; prints a line a case, and the faults."""
    faults = changed = sent = touched = 0
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder, "run")
        hostile_files.make_run(run)
        chosen = [case for case in cases() if case.name.startswith(beginning)]
        for i, case in enumerate(chosen):
            outcome = try_case(case, run, pathlib.Path(folder, str(i)))
            changed, sent = changed + outcome.changed, sent + outcome.sent
            touched += len(outcome.touched)
            fault = outcome.fault()
            faults += fault is not None
            how = "did without" if outcome.error is None else f"{outcome.error}"
            print(f"{case.name}: {fault or how.splitlines()[0][:150]}", flush=True)
    print(
        f"{len(chosen)} folders, {faults} faults: {changed} bytes changed, {sent} "
        f"sent, {touched} times something outside was opened or changed"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
