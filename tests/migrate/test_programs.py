"""Which files `tfrl migrate` changes, and what it does with those it cannot read."""

import os
import pathlib
import re
import stat
import subprocess

import pytest

from tests.migration.programs import renamed
from tfrl.migrate import files, programs

SCRIPTS = pathlib.Path(__file__).parents[1] / "migration" / "scripts"
OLD, NEW = "import tf_agents\n", "import tfrl\n"


@pytest.fixture
def program(tmp_path):
    """Writes files, and returns the results by name."""

    def run(**contents):
        for name, content in contents.items():
            path = tmp_path / (name if "." in name else f"{name.replace('__', '/')}.py")
            path.parent.mkdir(parents=True, exist_ok=True)
            is_bytes = isinstance(content, bytes)
            path.write_bytes(content if is_bytes else content.encode())
        results = programs.migrate([tmp_path])
        return {str(x.path.relative_to(tmp_path)): x for x in results}

    return run


def changed(results):
    return {name for name, result in results.items() if result.is_changed}


def test_files_of_a_program_are_those_that_a_file_with_a_library_leads_to(program):
    gym = "import gym\n"
    results = program(
        src__train=f"{OLD}import helpers.tools\n",
        src__near=gym,
        src__envs__walk=gym,
        src__other="import gym\nimport stable_baselines3\n",
        src__plain="import numpy as np\nx = np.float\n",
        src__helpers__tools="import numpy as np\nx = np.float\n",
        far__alone=gym,
    )
    assert changed(results) == {
        "src/train.py",
        "src/near.py",
        "src/envs/walk.py",
        "src/helpers/tools.py",
    }


def test_an_environment_of_another_file_is_known(program):
    results = program(
        envs__base="import gym\nclass Base(gym.Env):\n    pass\n",
        envs__walk="from envs.base import Base\nclass Walk(Base):\n"
        "    def reset(self):\n        return 1\n",
        train=f"{OLD}from envs.walk import Walk\nenv = Walk()\nobs = env.reset()\n",
        line=f"{OLD}class Base:\n    def reset(self):\n        return 1\n",
    )
    assert "return 1, {}" in results["envs/walk.py"].text
    assert "obs, _ = env.reset()" in results["train.py"].text
    assert "def reset(self):" in results["line.py"].text


def test_of_two_classes_of_one_name_the_imported_one_counts(program):
    step = "from {}.walk import Walk\nimport tf_agents\nx = Walk().reset()\n"
    results = program(
        old__walk="import gym\nclass Walk(gym.Env):\n    pass\n",
        new__walk="class Walk:\n    pass\n",
        a=step.format("old"),
        b=step.format("new"),
    )
    assert results["a.py"].text.endswith("x, _ = Walk().reset()\n")
    assert results["b.py"].text.endswith("x = Walk().reset()\n")


def test_a_module_that_hides_keras_is_told(program):
    results = program(
        **{"keras/__init__.py": "", "keras/own.py": "", "a": f"{OLD}import keras.own\n"}
    )
    (note,) = results["a.py"].notes
    assert note == (
        "2",
        "absent-names",
        "this module hides Keras from TensorFlow: rename it.",
    )


def test_a_program_without_the_libraries_and_one_with_its_own_acme_stay(program):
    assert changed(program(a="import gym\nimport numpy as np\nnp.float(1)\n")) == set()
    assert (
        changed(program(**{"acme/a.py": "import acme\n", "acme/__init__.py": ""}))
        == set()
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"import tf_agents\nprint 'x'\n", "no Python 3 in line 2"),
        (b"def f(:\n", "no Python 3 in line 1"),
        (b"if True:\n\tx = 1\n        y = 2\n", "no Python 3 in line 3"),
        (b"\x00\x01", "binary"),
        (b"# \xff\xfe\n", "no text"),
        (b"# coding: klingon\n", "no text"),
        (b"x = 1\n" * 400_000, "larger than 2 MB"),
    ],
)
def test_an_unreadable_file_is_told_and_the_others_go_on(program, content, reason):
    results = program(bad=content, good=OLD)
    assert results["bad.py"].reason.startswith(reason)
    assert changed(results) == {"good.py"}


def test_links_are_not_followed(program, tmp_path_factory, tmp_path):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "other.py").write_text(OLD)
    (tmp_path / "file.py").symlink_to(outside / "other.py")
    (tmp_path / "folder").symlink_to(outside)
    results = program(a=OLD)
    assert changed(results) == {"a.py"}
    assert {results[x].reason for x in ("file.py", "folder")} == {
        "a link, which is not followed"
    }


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            b"\xef\xbb\xbfimport tf_agents\r\nx = 1\r\n",
            b"\xef\xbb\xbfimport tfrl\r\nx = 1\r\n",
        ),
        (
            b"# coding: latin-1\nimport tf_agents # \xe9",
            b"# coding: latin-1\nimport tfrl # \xe9",
        ),
        (b"import tf_agents\nx = 1 \n  ", b"import tfrl\nx = 1 \n  "),
        (b"import tf_agents\nif 1:\n\tx = '\t'\n", b"import tfrl\nif 1:\n\tx = '\t'\n"),
    ],
)
def test_encoding_line_ends_and_mode_stay(program, tmp_path, content, expected):
    path = tmp_path / "a.py"
    path.write_bytes(content)
    path.chmod(0o751)
    program()
    assert (
        programs.write([x for x in programs.migrate([tmp_path]) if x.is_changed]) == 0
    )
    assert path.read_bytes() == expected
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


def git(folder, *words):
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", folder, *words],
        check=True,
        capture_output=True,
    )


def test_what_git_does_not_have_is_copied_first(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "program"
    folder.mkdir()
    git(folder, "init")
    (folder / ".gitignore").write_text("ignored.py\n")
    for name in ("clean", "edited", "staged", "new", "ignored", "assumed"):
        (folder / f"{name}.py").write_text(OLD)
    git(folder, "add", "clean.py", "edited.py", "assumed.py")
    git(folder, "commit", "-m", "x")
    git(folder, "add", "staged.py")
    git(folder, "update-index", "--assume-unchanged", "assumed.py")
    for name in ("edited", "assumed"):
        (folder / f"{name}.py").write_text(f"{OLD}x = 1\n")
    results = programs.migrate([folder])
    assert len(results) == 6
    assert programs.write(results) == 0
    copies = {x.name: x.read_text() for x in (tmp_path / "state").rglob("*.py")}
    assert copies == {
        "edited.py": f"{OLD}x = 1\n",
        "assumed.py": f"{OLD}x = 1\n",
        **{f"{name}.py": OLD for name in ("staged", "new", "ignored")},
    }
    assert all(x.read_text().startswith(NEW) for x in folder.glob("*.py"))
    assert capsys.readouterr().err.count("the file as it was is") == 5


def test_a_file_that_changes_meanwhile_is_not_overwritten(tmp_path, capsys):
    path = tmp_path / "a.py"
    path.write_text(OLD)
    (result,) = programs.migrate([path])
    path.write_text("import tf_agents, os\n")
    assert programs.write([result]) == 1
    assert path.read_text() == "import tf_agents, os\n"
    assert os.listdir(tmp_path) == ["a.py"]
    assert "changed since it was read" in capsys.readouterr().err


def test_files_of_gin_get_the_names_and_a_note(program, tmp_path):
    path = tmp_path / "a.gin"
    path.write_text(
        "import tf_agents.agents.dqn.dqn_agent\ntf_agents.DqnAgent.gamma = 0.9\n"
        "x.time_step = @tf_agents.environments.time_step.restart\n"
    )
    result = program()["a.gin"]
    assert result.text == (
        "import tfrl.agents.dqn.dqn_agent\nDqnAgent.gamma = 0.9\n"
        "x.time_step = @tfrl.trajectories.time_step.restart\n"
    )
    assert "gin.external_configurable for DqnAgent" in result.notes[0][2]
    path.write_text(result.text)
    assert not program()["a.gin"].is_changed


def test_the_scripts_for_tf_agents_become_what_the_pages_commands_make_of_them(
    tmp_path,
):
    results = programs.migrate([SCRIPTS])
    assert len(results) >= 10
    for result in results:
        without = re.sub(r"int\((num_actions|num_units)\)", r"\1", result.text)
        by_page = re.sub(
            r"int\((num_actions|num_units)\)", r"\1", renamed(result.source.text)
        )
        assert without == by_page
        (tmp_path / result.path.name).write_text(result.text)
    assert not any(x.is_changed for x in programs.migrate([tmp_path]))
    assert {rule for x in results for rule in x.changes} <= {
        "packages",
        "integer-sizes",
    }


def test_a_folder_of_an_environment_is_left_out(tmp_path):
    for name in ("venv", ".hidden", "__pycache__"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text(OLD)
    (tmp_path / "venv" / "pyvenv.cfg").write_text("")
    assert list(files.found(tmp_path)) == []


def test_files_that_step_a_moved_environment_are_moved_or_told(program):
    step = "from walk import Walk\nenv = Walk()\nobs, r, done, _ = env.step(0)\n"
    results = program(
        walk="import gym\nclass Walk(gym.Env):\n    pass\n",
        train=f"{OLD}import walk\n",
        play=step,
        baseline=f"import stable_baselines3\n{step}",
    )
    assert "terminated, truncated, _ = env.step(0)" in results["play.py"].text
    assert not results["baseline.py"].is_changed
    assert results["baseline.py"].reason.startswith("not moved, unlike ")
    assert results["baseline.py"].reason.endswith("walk.py")


def test_a_fault_of_a_rule_stops_one_file_alone(program, monkeypatch):
    def fail(file, rules):
        if "odd" in file.source:
            raise RuntimeError(f"{file.source!r} is strange")
        return apply(file, rules)

    apply = programs.File.apply
    monkeypatch.setattr(programs.File, "apply", fail)
    results = program(a=f"{OLD}odd = 1\n", b=OLD)
    assert results["a.py"].reason.startswith("a rule fails, which is a fault of tfrl")
    assert changed(results) == {"b.py"}
