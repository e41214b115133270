"""Parses the flags of a command and runs it; prints errors for its user."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import NoReturn

from absl import flags

from tfrl.algorithms import settings
from tfrl.command import closed_output, errors, flag_help, interrupts
from tfrl.system import log, portable

_HELP = {"--help", "-help", "-h", "-?", "--helpshort", "-helpshort"}


def start(
    given: flags.FlagValues,
    words: Sequence[str],
    main: Callable[..., None],
    text: Callable[[], str] | str | None,
    *,
    takes_words: bool = False,
) -> None:
    """Parses words and runs a command; prints user errors without a traceback.

    TensorFlow is imported when the command first uses it: neither `--help` nor an error
    in a flag waits for it.

    Args:
      given: The flags of the command.
      words: The words of the command line after the command's name.
      main: The command.
      text: The first text of `--help`, or a function that returns all of it.
      takes_words: Whether `main` takes the words that are not flags.
    """
    wants_help = not _HELP.isdisjoint(words)
    rest = _parse(given, words, takes_words=takes_words, wants_help=wants_help)
    if wants_help:
        whole = text() if callable(text) else flag_help.text(text or "", given)
        with closed_output.ends_in_silence():
            print(whole)
        return
    warnings.showwarning = errors.show_warning
    is_quiet = "quiet" in given and bool(given["quiet"].value)
    try:
        if "portable" in given and given["portable"].present:
            portable.choose(is_portable=bool(given["portable"].value))
        with (
            closed_output.ends_in_silence(),
            settings.remedied_by("set --{}"),
            log.silenced(is_silent=is_quiet),
        ):
            main(*[rest] * takes_words)
    except Exception as error:
        if interrupts.is_interrupt(error) or not errors.is_for_the_user(error):
            raise
        _exit_with(error, shows_traceback=bool(given["traceback"].value))


def _parse(
    given: flags.FlagValues,
    words: Sequence[str],
    *,
    takes_words: bool,
    wants_help: bool,
) -> list[str]:
    """Returns the words that are not flags; exits if a flag is wrong."""
    given.set_gnu_getopt(takes_words)
    # Help may show what other flags choose, and is no place for errors.
    unread: list[str] = []
    typed = ["tfrl", *(word for word in words if word not in _HELP)]
    try:
        _, *rest = given(typed, known_only=wants_help)
    except flags.UnrecognizedFlagError as error:
        near = flag_help.nearest(error.flagname, given)
        meant = f"; did you mean --{near}?" if near else ""
        if takes_words and error.flagname == "logdir":
            meant = "; give the folder without a flag"
        errors.exit_with(f"--{error.flagname}: unknown flag{meant}")
    except flags.IllegalFlagValueError as error:
        if wants_help:
            return unread
        errors.exit_with(errors.text_of_wrong_value(str(error), given))
    except flags.Error as error:
        errors.exit_with(str(error))
    if rest and not (takes_words or wants_help):
        takes_one = "env" in given and given["env"].value is None
        flag = (
            f"--env={rest[0]}" if takes_one and "=" not in rest[0] else "--name=value"
        )
        errors.exit_with(
            f"arguments: got {' '.join(rest)!r}, expected flags only; write {flag}."
        )
    return rest


def _exit_with(error: Exception, *, shows_traceback: bool) -> NoReturn:
    """Exits with the message of an error."""
    is_of_users_code = errors.is_of_users_code(error)
    if shows_traceback or is_of_users_code:
        print(log.plain(traceback.format_exc()), file=sys.stderr)
    if is_of_users_code:
        errors.exit_with(" ".join([f"{error!r}.", *error.__notes__]))
    errors.exit_with(
        errors.describe(error), "--traceback shows where, --help lists the flags"
    )
