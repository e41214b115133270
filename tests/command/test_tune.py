"""What `tfrl tune` prints."""

import types
import warnings

from tfrl.algorithms import registry
from tfrl.command import tune


def test_the_last_lines_can_be_copied_into_a_shell(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "my search"
    result = types.SimpleNamespace(row={"source": "here"}, values={"gamma": 0.9})
    monkeypatch.setattr(tune.study, "import_optuna", lambda: _OPTUNA)
    monkeypatch.setattr(tune.study, "find_class", lambda *_: None)
    monkeypatch.setattr(tune.quiet, "quieten_tensorflow", lambda: None)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "1")
    monkeypatch.setattr(tune.tune, "tune", lambda *_, **__: result)
    tune.main(registry.find("dqn"), ["--env=CartPole-v1", f"--logdir={folder}"])
    quoted = f"tfrl train dqn '--config={folder}/best.json' trains with it.\n"
    assert quoted in capsys.readouterr().out


_OPTUNA = types.SimpleNamespace(
    logging=types.SimpleNamespace(set_verbosity=lambda _: None, WARNING=30)
)
