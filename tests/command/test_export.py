"""`tfrl export` and `tfrl push`; the Hub is a server in this process."""

import base64
import http.server
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import types
import warnings

import gymnasium
import numpy as np
import pytest

import tfrl
from tests.forks import REPOSITORY
from tests.reports.test_health import healthy_rows
from tests.reports.test_report import write_run
from tfrl.command import export
from tfrl.environments import extras
from tfrl.policies.exporting import formats
from tfrl.reports import model_card


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A run, and its algorithm."""
    folder = tmp_path_factory.mktemp("runs") / "dqn"
    dqn = tfrl.DQN("CartPole-v1", seed=0, fc_layer_params=(8,), replay_capacity=100)
    dqn.build()
    dqn.save(folder)
    return folder, dqn


def run(command, monkeypatch, *words):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    command([*map(str, words)])


def test_a_run_is_exported_with_its_card(saved, monkeypatch, capsys):
    folder, dqn = saved
    run(export.main, monkeypatch, folder, "--format=numpy")
    printed = capsys.readouterr().out
    path = folder / "export" / "policy.py"
    assert f"{path}: " in printed
    assert " bytes; acts as the policy does on 1,000 observations\n" in printed
    assert f"Card: {folder / 'export' / 'README.md'}\n" in printed
    with pytest.raises(SystemExit):
        run(export.main, monkeypatch, folder, "--format=numpy")
    said = capsys.readouterr().err
    assert f"{path}', where there is one already; give overwrite=True or --over" in said
    act = formats.FORMATS["numpy"].load(path)
    x = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    assert (act({"observation": x})["action"] == dqn.predict(x)[0]).all()


def test_a_run_is_exported_without_its_checkpoints(
    saved, tmp_path, monkeypatch, capsys
):
    """As a run that was trained in one program with others, or that trains now."""
    folder = shutil.copytree(saved[0], tmp_path / "run")
    shutil.rmtree(folder / "checkpoints")
    (folder / "metrics.csv").write_text("iteration,evaluation_return\n100,9.0\n")
    before = {path.name for path in folder.iterdir()}
    run(
        export.main,
        monkeypatch,
        folder,
        "--format=numpy",
        f"--output={tmp_path / 'to'}",
    )
    assert " bytes; acts as the policy does on 1,000" in capsys.readouterr().out
    assert {path.name for path in folder.iterdir()} == before


def test_a_policy_that_cannot_be_built_is_not_exported(
    saved, tmp_path, monkeypatch, capsys
):
    folder = shutil.copytree(saved[0], tmp_path / "run")
    shutil.rmtree(folder / "policy")
    with pytest.raises(SystemExit):
        run(export.main, monkeypatch, folder, "--format=numpy")
    assert "holds no policy, expected the one that" in capsys.readouterr().err
    config = folder / "config.json"
    config.write_text(config.read_text().replace('parts": ""', 'parts": "agent=Own"'))
    with pytest.raises(SystemExit):
        run(export.main, monkeypatch, folder, "--format=numpy")
    assert "of a program's own, agent=Own, got none;" in capsys.readouterr().err


class Switches(gymnasium.Env):
    """Has three switches of two, three and two positions."""

    observation_space = gymnasium.spaces.Box(-1, 1, (4,))
    action_space = gymnasium.spaces.MultiDiscrete([2, 3, 2])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, True, False, {}


def test_a_method_exports_the_environments_own_actions(tmp_path):
    dqn = tfrl.DQN(Switches, fc_layer_params=(8,), replay_capacity=100)
    path = dqn.export(tmp_path / "policy.py", format="numpy")
    act = formats.FORMATS["numpy"].load(path)
    x = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    got = act({"observation": x})["action"]
    np.testing.assert_array_equal(got, dqn.predict(x)[0])
    assert got.shape == (50, 3)
    assert len(np.unique(got, axis=0)) > 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "folder: got none, expected the folder of one run."),
        (["a", "b"], "folder: got a b, expected the folder of one run."),
        (["none"], "folder: got 'none', which does not exist, expected"),
        (["none", "--format=torch"], "--format: expected one of onnx, litert, saved"),
    ],
)
def test_wrong_words_are_told_in_one_line(words, expected, monkeypatch, capsys):
    monkeypatch.setattr(formats, "find", lambda name: formats.FORMATS[name])
    with pytest.raises(SystemExit):
        run(export.main, monkeypatch, *words)
    assert f"error: {expected}" in capsys.readouterr().err


def test_the_command_offers_every_format():
    assert [*formats.FORMATS] == export.FORMATS


@pytest.mark.parametrize("name", ["README.md", "curve.svg", "agent.mp4", "policy.py"])
def test_a_users_file_in_the_folder_of_an_export_stays(
    saved, name, tmp_path, monkeypatch, capsys
):
    (tmp_path / name).write_text("mine")
    words = saved[0], "--format=numpy", f"--output={tmp_path}", "--overwrite"
    with pytest.raises(SystemExit):
        run(export.main, monkeypatch, *words)
    assert name in capsys.readouterr().err
    assert [x.read_text() for x in tmp_path.iterdir()] == ["mine"]


@pytest.fixture
def exported(tmp_path):
    """A run with an export."""
    folder = write_run(tmp_path / "run", healthy_rows()[:3])
    (folder / "export").mkdir()
    (folder / "export" / "policy.onnx").write_bytes(b"model")
    model_card.write(folder, folder / "export")
    return folder


@pytest.fixture
def hub(monkeypatch):
    """The calls of the Hub's client."""
    calls = []

    class HfApi:
        def create_repo(self, repo, **arguments):
            calls.append((repo, arguments))
            return f"https://hub/{repo}"

        def upload_folder(self, **arguments):
            calls.append(arguments)

    module = types.ModuleType("huggingface_hub")
    module.HfApi = HfApi
    module.__spec__ = importlib.util.spec_from_loader("huggingface_hub", None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return calls


@pytest.mark.parametrize("words", [(), ("--public",)])
def test_an_export_is_pushed_to_a_new_repository_that_is_private(
    words, hub, exported, monkeypatch, capsys
):
    run(export.push, monkeypatch, exported, "--repo=me/policy", *words)
    assert capsys.readouterr().out == f"{exported}/export is at https://hub/me/policy\n"
    assert hub == [
        ("me/policy", {"private": not words, "exist_ok": True}),
        {
            "repo_id": "me/policy",
            "folder_path": f"{exported}/export",
            "commit_message": "Upload run",
        },
    ]


@pytest.mark.parametrize("name", ["notes.txt", "inner/notes.txt", "README.md", ""])
@pytest.mark.parametrize("is_named", [False, True])
def test_a_link_is_refused_before_a_repository_is_made(
    name, is_named, hub, exported, tmp_path, monkeypatch, capsys
):
    secret = tmp_path / "id_rsa"
    folder = exported / "export"
    if name:
        secret.write_text((folder / "README.md").read_text())
        (folder / "inner").mkdir()
        path = folder / name
        path.unlink(missing_ok=True)
    else:
        path = folder.rename(secret) and folder
    path.symlink_to(secret)
    words = [f"--output={folder}"] if is_named and name else []
    with pytest.raises(SystemExit):
        run(export.push, monkeypatch, exported, "--repo=me/policy", *words)
    said = capsys.readouterr().err
    assert f"error: {path}: it is a link, to '{secret}', expected a folder or" in said
    assert hub == []


@pytest.mark.parametrize("error", [ConnectionError("no name\nmore"), KeyError("id")])
def test_a_push_that_fails_is_one_line(hub, exported, monkeypatch, capsys, error):
    def fails(*args, **arguments):
        raise error

    monkeypatch.setattr(sys.modules["huggingface_hub"].HfApi, "create_repo", fails)
    with pytest.raises(SystemExit):
        run(export.push, monkeypatch, exported, "--repo=bad")
    told, _ = capsys.readouterr().err.splitlines()
    text = "error: --repo: got 'bad', to which nothing could be uploaded "
    assert told.startswith(f"{text}({type(error).__name__}: ")
    assert hub == []


def test_a_push_needs_a_repository_an_export_and_its_extra(
    exported, monkeypatch, capsys
):
    def error_of(*words):
        with pytest.raises(SystemExit):
            run(export.push, monkeypatch, exported, *words)
        return capsys.readouterr().err

    assert "--repo: got none, expected a repository" in error_of()
    # No folder is uploaded that holds something else.
    assert "where there is no export with its card; run tfrl export" in error_of(
        "--repo=me/policy", f"--output={exported}"
    )
    monkeypatch.setattr(export.importlib.util, "find_spec", lambda name: None)
    assert "pip install 'tfrl[hub]'" in error_of("--repo=me/policy")


class _Hub(http.server.BaseHTTPRequestHandler):
    """The part of the Hub's API that an upload of small files needs."""

    def do_POST(self):
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size) if size else self._chunks()
        self.server.requests.append((self.path, self.headers["Authorization"]))
        url = f"http://{self.headers['Host']}/me/policy"
        answer = {}
        if "/preupload/" in self.path:
            files = json.loads(body)["files"]
            answer = {
                "files": [
                    {"path": x["path"], "uploadMode": "regular", "shouldIgnore": False}
                    for x in files
                ]
            }
        elif "/commit/" in self.path:
            self.server.commit += [json.loads(line) for line in body.splitlines()]
            answer = {"success": True, "commitUrl": f"{url}/commit/1", "commitOid": "1"}
        elif self.path.endswith("/repos/create"):
            answer = {"url": url, "name": "me/policy", "id": "1"}
        self._answer(answer)

    def do_GET(self):
        self._answer({"id": "me/policy", "sha": "0", "siblings": []})

    def _chunks(self):
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size + 2)[:-2]
        self.rfile.readline()
        return body

    def _answer(self, answer):
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@pytest.mark.skipif(
    not extras.is_installed("huggingface_hub"), reason="needs tfrl[hub]"
)
def test_an_export_is_pushed_by_the_hubs_own_client(exported):
    server = http.server.ThreadingHTTPServer(("localhost", 0), _Hub)
    server.requests, server.commit = [], []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://localhost:{server.server_port}"
    environment = {
        **os.environ,
        "HF_ENDPOINT": url,
        "HF_TOKEN": "hf_secret",
        "HF_HOME": str(exported / "home"),
        "HF_HUB_DISABLE_XET": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tfrl", "push", str(exported), "--repo=me/policy"],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    server.shutdown()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{exported}/export is at ")
    files = {
        line["value"]["path"]: base64.b64decode(line["value"]["content"])
        for line in server.commit
        if line["key"] == "file"
    }
    folder = pathlib.Path(exported) / "export"
    assert files == {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {token for _, token in server.requests} == {"Bearer hf_secret"}
