"""`tfrl migrate`, as its users type it."""

import subprocess
import sys

import pytest

from tfrl.command import migrate


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ".state"))
    (tmp_path / "a.py").write_text("import tf_agents\nopen('ran', 'w')\n")
    return tmp_path


def test_it_prints_the_changes_and_writes_only_if_asked(folder, capsys):
    migrate.main(["."])
    printed = capsys.readouterr().out
    assert "--- a/a.py\n+++ b/a.py\n" in printed
    assert "-import tf_agents\n+import tfrl\n" in printed
    assert "changes  a.py: packages 1\n" in printed
    assert "rule     packages: see the guide's page from_tf_agents\n" in printed
    assert printed.endswith("1 of 1 files would change.\n--write changes them.\n")
    assert (folder / "a.py").read_text().startswith("import tf_agents")
    migrate.main([".", "--write"])
    assert (folder / "a.py").read_text().startswith("import tfrl\n")
    assert not (folder / "ran").exists()


def test_a_check_fails_until_nothing_would_change(folder, capsys):
    with pytest.raises(SystemExit) as ended:
        migrate.main(["--check", "."])
    assert ended.value.code == 1
    assert "import" not in capsys.readouterr().out
    migrate.main(["--write", "a.py"])
    migrate.main(["--check", "."])
    assert capsys.readouterr().out.endswith("0 of 1 files would change.\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "path: got none, expected files or folders"),
        (["nowhere"], "path: got nowhere, expected files or folders"),
        (["a.py", "--write", "--check"], "--check: got it with --write"),
    ],
)
def test_wrong_words_are_told(folder, capsys, words, message):
    with pytest.raises(SystemExit) as ended:
        migrate.main(words)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_it_starts_without_tensorflow(folder):
    code = (
        "import sys; sys.argv = ['tfrl', 'migrate', 'a.py']\n"
        "from tfrl.command import main; main.main()\n"
        "print({'tensorflow', 'keras', 'gymnasium'} & set(sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout.endswith("set()\n"), told.stderr
