"""Parses the flags of a command and runs it; prints errors for its user."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from absl import flags

from tfrl.algorithms import settings
from tfrl.command import errors, parsing
from tfrl.system import interrupts, log, portable

STATUS = 130  # What shells give a program that Ctrl-C has ended.
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
        whole = text() if callable(text) else parsing.help_text(text or "", given)
        with ends_in_silence():
            print(whole)
        return
    warnings.showwarning = errors.show_warning
    is_quiet = "quiet" in given and bool(given["quiet"].value)
    try:
        if "portable" in given and given["portable"].present:
            portable.choose(is_portable=bool(given["portable"].value))
        with (
            ends_in_silence(),
            settings.remedied_by("set --{}"),
            log.silenced(is_silent=is_quiet),
        ):
            main(*[rest] * takes_words)
    except Exception as error:
        if is_interrupt(error) or not errors.is_for_the_user(error):
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
        near = parsing.nearest(error.flagname, given)
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


def handle_interrupts() -> None:
    """Lets Ctrl-C end this process with status 130 and without a traceback."""
    show = sys.excepthook

    def exit_or_show(
        kind: type[BaseException],
        error: BaseException,
        trace: types.TracebackType | None,
    ) -> None:
        if is_interrupt(error):
            sys.exit(STATUS)
        show(kind, error, trace)

    sys.excepthook = exit_or_show


@contextlib.contextmanager
def resumable() -> Iterator[None]:
    """Says how to resume runs that a signal has stopped; exits with its status."""
    try:
        yield
    except (KeyboardInterrupt, interrupts.Terminated):
        print("Interrupted. Run the same command again to resume.")
        sys.exit(interrupts.exit_status())


def is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C raised an error, or another error that caused it.

    A module that is interrupted while it is imported may raise an ImportError.
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextlib.contextmanager
def ends_in_silence() -> Iterator[None]:
    """Leaves this context in silence once standard output has been closed.

    `tfrl list settings | head -1` ends with status 0. So does a command that was
    started without standard output, for which `sys.stdout` is None.
    """
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _is_closed():
            raise
        # Python flushes standard output once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_closed() -> bool:
    """Whether the pipe to which standard output writes has no reader.

    A broken pipe to another process is an error. Windows, which has no `select.poll`,
    does not raise BrokenPipeError for standard output.
    """
    if sys.platform == "win32":
        return False
    waiting = select.poll()
    waiting.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in waiting.poll(0))
