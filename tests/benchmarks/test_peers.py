import pathlib
import subprocess
import sys

import pytest

from benchmarks import peers


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TFRL_PEERS", str(tmp_path))
    return tmp_path


def test_the_folder_can_be_named(folder, monkeypatch):
    assert peers.folder() == folder
    monkeypatch.delenv("TFRL_PEERS")
    assert peers.folder() == pathlib.Path.home() / ".cache/tfrl-peers"


def test_an_environment_is_made_by_its_recipe(folder, monkeypatch):
    commands = []
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: commands.append(command)
    )
    monkeypatch.setattr(peers, "_find_python", lambda _: "the-python")
    peers.make("tf_agents")
    pip = [str(folder / "tf_agents/bin/python"), "-m", "pip", "install", "-q"]
    assert commands == [
        ["the-python", "-m", "venv", str(folder / "tf_agents")],
        [*pip, "tf-agents[reverb]==0.19.0", "gymnasium"],
        [*pip, "--no-deps", "gym==0.23.0"],
    ]


def test_any_python_does_where_none_is_asked_for():
    assert peers._find_python(None) == sys.executable


def test_a_missing_python_is_named(monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 13, 0))
    monkeypatch.setenv("PATH", "")
    assert peers.main(["tf_agents"]) == 1
    error = capsys.readouterr().err
    assert "tf_agents: cannot be made: it needs Python 3.11" in error
    assert "no python3.11 on the path" in error


def test_what_could_not_be_made_is_removed(folder, monkeypatch, capsys):
    def fail(command, **_):
        (folder / "jax").mkdir(exist_ok=True)
        if "pip" in command:
            raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(subprocess, "run", fail)
    assert peers.main(["jax"]) == 1
    assert not (folder / "jax").exists()
    assert "pip install -q jax flax optax gymnax six failed" in capsys.readouterr().err


def test_what_is_there_is_left_alone(folder, monkeypatch, capsys):
    python = peers.python("torch")
    python.parent.mkdir(parents=True)
    python.touch()
    monkeypatch.setattr(peers, "make", None)
    assert peers.main(["torch"]) == 0
    assert f"torch: is in {folder / 'torch'}" in capsys.readouterr().out


def test_an_unknown_peer_is_an_error(capsys):
    with pytest.raises(SystemExit):
        peers.main(["tf"])
    errors = capsys.readouterr().err
    assert (
        "expected peers of tf_agents, torch, jax, d3rlpy, dreamerv3, sbx, got tf"
        in errors
    )
