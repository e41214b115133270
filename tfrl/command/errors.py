"""The errors and warnings of the commands, in words for their users."""

from __future__ import annotations

import difflib
import dis
import re
import sys
from collections.abc import Collection
from typing import Any, NoReturn

from absl import flags

import tfrl
from tfrl.system import log

# The flags whose values come to the loops and environments by another name.
_ORIGINS = {
    "environment_name": "--env",
    "max_length": "--replay_capacity",
    "num_frames": "--frame_stack",
    "max_sequence_length": "--replay_capacity",
}

# The packages, and the script that is run, whose errors have texts for users.
_OURS = ("tfrl", "examples", "__main__")
_TOLD = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)


def exit_with(message: str, hint: str = "--help lists the flags") -> NoReturn:
    """Prints an error and a hint, and exits with status 2."""
    print(f"error: {log.plain(message)}", file=sys.stderr)
    print(f"({hint})", file=sys.stderr)
    sys.exit(2)


def refuse(what: str, word: str, known: Collection[str], hint: str) -> NoReturn:
    """Exits with an error about a word, which names the nearest of those allowed.

    Args:
      what: The kind of word.
      word: The word that was given.
      known: The words that are allowed.
      hint: See `exit_with`.
    """
    near = difflib.get_close_matches(word.lower().replace("-", "_"), known, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    exit_with(f"{what}: got {word!r}, expected one of {', '.join(known)}{meant}", hint)


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Writes a warning as a line, without its place in the code."""
    # Not at the top: --help does not wait for tqdm.
    import tqdm

    # Gymnasium colours its warnings.
    text = re.sub(r"\033\[[\d;]*m", "", str(message)).removeprefix("WARN: ")
    # tqdm writes above its bars.
    line = log.plain(" ".join(text.split()))
    tqdm.tqdm.write(f"warning: {line}", file=sys.stderr)


def describe(error: Exception) -> str:
    """Returns the part of an error's message that is about the settings.

    TensorFlow's dump is left out. The text names the flags that misnamed arguments come
    from. If memory runs out, it names the settings to lower.
    """
    text = str(error)
    if _is_of_memory(error):
        lines = text.splitlines() or [type(error).__name__]
        reason = next((line for line in lines if "llocat" in line), lines[0])
        return (
            "memory: the run needs more than there is; lower a setting that it grows "
            "with, such as num_envs, batch_size, replay_capacity, fc_layer_params or "
            f"num_episodes ({reason})."
        )
    # The error of a Python function in a graph is at the end of the dump.
    raised = re.findall(r"^\w+Error: (.+)$", text, re.MULTILINE)
    if text.startswith("Graph execution error") and raised:
        text = raised[-1]
    origins = [
        f"Here {argument} comes from {flag}."
        for argument, flag in _ORIGINS.items()
        if re.search(rf"\b{argument}\b", text)
    ]
    return " ".join([text, *origins])


def _is_of_memory(error: Exception) -> bool:
    # TensorFlow's own error is known by its name, since the script may not need it.
    of_tensorflow = type(error).__name__ == "ResourceExhaustedError"
    return of_tensorflow or isinstance(error, MemoryError)


def text_of_wrong_value(told: str, given: flags.FlagValues) -> str:
    """Returns the error about a flag's value, worded like the other messages.

    Args:
      told: The library's message, `flag --NAME=VALUE: ...`.
      given: The flags.
    """
    found = re.match(r"flag --([\w.]+)=(.*?): ", told, re.DOTALL)
    if found is None or found[1] not in given:
        return told
    name, value = found.groups()
    flag = given[name]
    words = getattr(flag.parser, "enum_values", None)
    expected = "true or false" if flag.boolean else flag.parser.syntactic_help
    expected = f"one of {', '.join(words)}" if words else expected
    return f"--{name}: expected {expected}, got {value!r}; write --{name}=VALUE."


def is_of_users_code(error: Exception) -> bool:
    """Whether an environment or a callback of the user raised an error in a run."""
    # Whoever asks for the memory that is lacking is not to blame, such as NumPy.
    if _is_of_memory(error) or not getattr(error, "__notes__", ()):
        return False
    return _origin(error)[0] not in (*_OURS, "tensorflow", "keras")


def is_for_the_user(error: Exception) -> bool:
    """Whether the message of an error says what a user of the script should change.

    tfrl raises errors about what it was given by `raise`, with a text for the user.
    What Python raises in the midst of its code, such as a KeyError, is a fault of tfrl,
    and so is what a library says of a call that tfrl made; its traceback is of use.
    """
    if isinstance(error, ImportError | OSError) or _is_of_memory(error):
        return True
    module, is_raised = _origin(error)
    is_told = isinstance(error, _TOLD) and bool(str(error))
    if is_told and is_raised and module in _OURS:
        return True
    if is_of_users_code(error):
        return True
    import gymnasium
    import tensorflow as tf

    from tfrl.savers import whole_checkpoints

    return isinstance(
        error,
        (
            whole_checkpoints.CheckpointError,
            gymnasium.error.Error,
            tfrl.replay_service.ReverbError,
            tf.errors.InvalidArgumentError,
        ),
    )


def _origin(error: Exception) -> tuple[str, bool]:
    """Returns the package whose code raised an error, and whether by `raise`."""
    place = error.__traceback__
    if place is None:
        return "", False
    while place.tb_next is not None:
        place = place.tb_next
    frame = place.tb_frame
    package = frame.f_globals.get("__name__", "").partition(".")[0]
    instruction = dis.opname[frame.f_code.co_code[place.tb_lasti]]
    return package, instruction == "RAISE_VARARGS"
