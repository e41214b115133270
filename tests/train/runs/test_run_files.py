"""The files of a run's folder, damaged in ways that no run would write."""

import json
import os
import re
import warnings

import pytest

from tfrl.train.runs import run_directory, run_files

DEEP = "[" * 100_000


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "Expecting value"),
        (b'{"env": "Cart', "Unterminated"),
        (b'{"env": "\xff"}', "can't decode byte 0xff"),
        (DEEP.encode(), "too deep"),
        (b'{"env": ' + b"[" * 90 + b"]" * 90 + b"}", "too deep"),
        (rb'{"env": "\ud800"}', "surrogates not allowed"),
        (b"[1, 2]", "got a list, expected a JSON object"),
        (b"null", "got a NoneType, expected a JSON object"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_named_in_one_line(
    path, content, reason
):
    path.write_bytes(content)
    with pytest.raises(run_files.RunDirectoryError) as error:
        run_files.read_config(path)
    text = str(error.value)
    assert text.startswith(f"{path}: ")
    assert reason in text
    assert text.endswith("--overwrite.")
    assert "\n" not in text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    "read", [run_files.read_config, run_files.read_rows, run_files.read_metrics]
)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_named_and_not_waited_for(path, read, make):
    make(path)
    with pytest.raises(run_files.RunDirectoryError, match=f"^{path}: .*it is no file"):
        read(path)


def test_fields_of_wrong_types_are_left_out_and_named_in_one_line(path):
    kinds = {"gamma": (int, float), "jit_compile": (bool,), "layers": (list,)}
    given = {"gamma": "0.9", "jit_compile": 1, "layers": None, "env": 3, "own": None}
    path.write_text(json.dumps({**given, "num_iterations": 10**400, "seed": 4}))
    with pytest.warns(RuntimeWarning) as warned:
        read = run_files.read_config(path, kinds)
    assert read == {"own": None, "seed": 4}
    (warning,) = warned
    assert str(warning.message) == (
        f'{path}: gamma: got "0.9", which cannot be used and is left out, and 4 more; '
        "restore the file from a copy if you have one."
    )
    assert run_files.read_config(path)["gamma"] == "0.9"  # Programs have other kinds.


def rows_of(path, *lines):
    path.write_bytes(b"\n".join(lines))
    return run_files.read_rows(path)


def test_a_line_that_cannot_be_read_costs_that_line_alone(path):
    lines = [b'{"iteration": 1}', b'{"iteration": 2, "lo\xffss": 1}', DEEP.encode()]
    lines += [b"[3]", b'{"loss": 1}', b'{"iteration": "4"}']
    lines += [
        b'{"iteration": 4, "environment_steps": %s, "train_steps": 1}' % steps
        for steps in (b"[1]", b"1.5", b"true", b"null")
    ]
    lines += [b'{"iteration": 4, "environment_steps": 1}', b'{"iteration": 5}', b""]
    expected = f"^{re.escape(str(path))}: line 2: 'utf-8' codec .* and 9 more; restore"
    with pytest.warns(RuntimeWarning, match=expected):
        assert rows_of(path, *lines) == [{"iteration": 1}, {"iteration": 5}]


def test_a_last_line_that_a_killed_run_left_is_no_fault(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = b'{"iteration": 1}'
        assert rows_of(path, first, b'{"iterat') == [{"iteration": 1}]
        assert rows_of(path, first, b'{"iteration": 2}') == [
            {"iteration": 1},
            {"iteration": 2},
        ]
        assert run_files.read_rows(path.with_name("none")) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("loss", None),
        ("loss", "a word"),
        ("starting_seconds", {"a": 1}),
        ("evaluating_seconds", "nan"),
        ("training_seconds", 10**400),
        ("versions", ["2.21.0"]),
        ("environment", "CartPole-v1"),
        ("environment", {"reward_threshold": "high"}),
        ("environment", {"dead_actions": ["lowest", 3]}),
        ("environment", {"reward_range": [1]}),
        ("evaluation_returns", "abc"),
        ("evaluation_returns", [1, "a"]),
        ("evaluation_lengths", [10, "nan"]),
        ("evaluation_lengths", [-1]),
        ("evaluation_terminated", [True]),  # Without lengths.
    ],
)
def test_a_value_of_another_type_is_left_out_of_its_row(path, name, value):
    line = json.dumps({"iteration": 1, name: value, "q_value": 2.0}).encode()
    with pytest.warns(RuntimeWarning, match=rf"line 1: {name}: got "):
        assert rows_of(path, line, b"") == [{"iteration": 1, "q_value": 2.0}]


def test_values_that_runs_write_stay(path):
    row = {"iteration": 1, "loss": "nan", "evaluation_returns": [1.5, "inf"]}
    row |= {"evaluation_lengths": [3, 4], "evaluation_terminated": [True, False]}
    facts = {"reward_range": [-1, 0.5], "time_limit": 500, "actions_matter": True}
    row |= {"versions": {"python": "3.11"}, "environment": facts, "own": {"a": [1]}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (read,) = rows_of(path, json.dumps(row).encode(), b"")
    assert read == {**row, "evaluation_returns": [1.5, float("inf")]}


@pytest.mark.parametrize("value", ["nan", None, [1], True, 10**400, float("inf")])
def test_what_is_no_finite_number_is_zero_among_numbers(value):
    assert run_files.number({"steps": value}, "steps") == 0.0
    assert run_files.number({"steps": 3}, "steps") == 3


def test_a_film_that_is_a_link_is_not_followed(path):
    secret = path.with_name("secret")
    secret.write_text("secret")
    path.symlink_to(secret)
    assert run_files.read_media(path, 100) is None
    assert run_files.read_media(secret, 100) == b"secret"
    assert run_files.read_media(secret, 5) is None


@pytest.mark.parametrize(
    "place",
    [
        *("checkpoints", "policy/variables/variables.index", "tensorboard/inner"),
        *("export/notes.txt", "runs/seed_0", "programs", "final_policy.old"),
    ],
)
@pytest.mark.parametrize("is_missing", [False, True])
def test_a_link_in_a_folder_that_libraries_use_is_named(place, is_missing, tmp_path):
    path, target = tmp_path / "run" / place, tmp_path / "home"
    path.parent.mkdir(parents=True)
    if not is_missing:
        target.mkdir()
    path.symlink_to(target)
    (tmp_path / "run" / "config.json").write_text("{}")
    expected = rf"^{path}: it is a link, to '{target}', expected a folder or a file of"
    for use in (
        lambda: run_files.check_links(tmp_path / "run"),
        lambda: run_files.read_config(tmp_path / "run" / "config.json"),
        lambda: run_directory.RunDirectory(tmp_path / "run", {}, overwrite=True),
    ):
        with pytest.raises(run_files.RunDirectoryError, match=expected):
            use()
    assert path.is_symlink()


def test_the_folder_of_a_run_may_be_a_link_and_hold_own_ones(tmp_path):
    run = tmp_path / "disk" / "run"
    (run / "policy").mkdir(parents=True)
    (run / "runs" / "seed_0").mkdir(parents=True)
    (run / "runs" / "seed_0" / "notes").symlink_to(tmp_path)
    (run / "notes").symlink_to(tmp_path)
    (tmp_path / "logs").symlink_to(run)
    (run / "config.json").write_text('{"seed": 1}')
    assert run_files.read_config(tmp_path / "logs" / "config.json") == {"seed": 1}


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (run_files.read_config, "config.json"),
        (run_files.read_rows, "diagnostics.jsonl"),
        (run_files.read_metrics, "metrics.csv"),
    ],
)
def test_a_file_that_is_a_link_is_not_read(read, name, tmp_path):
    (tmp_path / "own").write_text("{}")
    (tmp_path / name).symlink_to(tmp_path / "own")
    with pytest.raises(run_files.RunDirectoryError, match=rf"{name}: .* is a link, to"):
        read(tmp_path / name)


def test_an_error_and_a_warning_give_a_terminal_no_commands(tmp_path):
    (tmp_path / "config.json").write_text('["\x1b"]')
    assert str(run_files.RunDirectoryError("a\x1b[2J\nb")) == "a\\x1b[2J\nb"
    (tmp_path / "diagnostics.jsonl").write_text('{"iteration": 1, "\\u001b[2J": "x"}\n')
    with pytest.warns(RuntimeWarning, match="left out") as given:
        run_files.read_rows(tmp_path / "diagnostics.jsonl")
    assert r"line 1: \x1b[2J: got" in str(given[0].message)
