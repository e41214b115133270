"""The lines that the library tells: bare, among an application's own, or not at all."""

import logging
import subprocess
import sys

import pytest

from tfrl.system import log


def test_a_line_is_written_to_standard_error_as_it_is(capsys):
    log.info("100% of it")
    assert capsys.readouterr() == ("", "100% of it\n")


def test_an_application_that_shows_such_records_gets_it_alone(caplog, capsys):
    with caplog.at_level(logging.INFO):
        log.info("100% of it")
    (record,) = caplog.records
    assert (record.name, record.getMessage()) == ("tfrl", "100% of it")
    assert record.filename == "test_log.py"
    assert capsys.readouterr().err == ""


def test_a_level_of_the_logger_silences_it(caplog, capsys):
    with caplog.at_level(logging.WARNING, "tfrl"):
        log.info("quiet")
    logging.disable(logging.INFO)
    log.info("quiet")
    logging.disable(logging.NOTSET)
    assert capsys.readouterr().err == ""
    assert not caplog.records


@pytest.mark.parametrize(
    ("before", "shown"),
    [
        ("", "told\n"),
        ("logging.basicConfig()", "told\n"),
        ("logging.basicConfig(level=logging.INFO)", "INFO:tfrl:told\n"),
        ("logging.getLogger().setLevel(logging.INFO)", "told\n"),
        ("logging.getLogger('tfrl').setLevel(logging.INFO)", "told\n"),
        ("logging.getLogger('tfrl').setLevel(logging.ERROR)", ""),
        ("from absl import logging as x; x.use_absl_handler()", "told\n"),
    ],
)
def test_each_application_shows_it_once(before, shown):
    program = f"import logging\nfrom tfrl.system import log\n{before}\nlog.info('told')"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert (run.stdout, run.stderr) == ("", shown)


def test_a_text_gives_a_terminal_no_commands(capsys):
    evil = "\x1b]0;owned\x07 \x9b2J \r\b\x7f\0 \u202egnp"
    escaped = r"\x1b]0;owned\x07 \x9b2J \r\x08\x7f\x00 \u202egnp"
    assert log.plain(evil) == escaped
    log.info(evil)
    log.say(evil)
    assert capsys.readouterr() == (f"{escaped}\n", f"{escaped}\n")


def test_other_texts_stay_as_they_are():
    text = "a\tb\nc äöü 強化学習 \U0001f600"
    assert log.plain(text) == text
    assert log.plain(3) == "3"
