"""The command `tfrl cache`."""

import subprocess
import sys

import pytest

from tfrl.command import cache
from tfrl.compilation import program_store


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("TFRL_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TF_XLA_FLAGS", raising=False)
    root = tmp_path / "programs"
    store = program_store.ProgramStore(root, "kind", print)
    store.write("group", "a.pb", bytes(2_000_000))
    store.write("group", "b.pb", bytes(1_000_000))
    return root


def test_it_shows_the_place_the_number_the_size_and_the_limit(root, capsys):
    cache.main([])
    assert capsys.readouterr().out == (
        f"Compiled programs: 2, 3 MB of at most 500 MB, in {root}\n"
    )


def test_a_limit_holds_from_now_on(root, capsys):
    cache.main(["--limit=2"])
    assert "Compiled programs: 1, 1 MB of at most 2 MB" in capsys.readouterr().out
    assert program_store.limit(root) == 2_000_000


def test_it_deletes_all_programs(root, capsys):
    cache.main(["--empty"])
    assert "Compiled programs: 0, 0 MB" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("TFRL_CACHE_DIR", "off", "TFRL_CACHE_DIR=off turns it off."),
        (
            "TF_XLA_FLAGS",
            "--tf_xla_persistent_cache_directory=/mine",
            "TF_XLA_FLAGS names a directory of its own.",
        ),
        ("TF_XLA_FLAGS", "my_flags.txt", "TF_XLA_FLAGS names a file"),
    ],
)
def test_it_says_why_nothing_is_kept(
    root, capsys, monkeypatch, variable, value, reason
):
    monkeypatch.setenv(variable, value)
    cache.main(["--empty"])
    printed = capsys.readouterr().out
    assert printed.startswith(f"Compiled programs are not kept: {reason}")
    assert program_store.usage(root).number == 2


def test_it_does_not_wait_for_tensorflow(root):
    code = (
        "import sys; sys.argv = ['tfrl', 'cache']; from tfrl.command import main; "
        "main.main(); assert not {'tensorflow', 'numpy'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
