"""Trains, plays and evaluates agents from the command line.

    tfrl train sac --env=Pendulum-v1       trains, and writes to logs/sac_Pendulum-v1_0
    tfrl tune sac --env=Pendulum-v1        searches settings with Optuna
    tfrl play LOGDIR                       plays the best policy of a run, and films it
    tfrl evaluate LOGDIR                   measures the best policy of a run
    tfrl verify LOGDIR                     trains a run again, and compares the weights
    tfrl report LOGDIR                     writes a report on a run
    tfrl record LOGDIR                     records episodes, to train offline from
    tfrl export LOGDIR --format=onnx       writes the policy for other programs
    tfrl push LOGDIR --repo=USER/NAME      uploads an export to the Hugging Face Hub
    tfrl sweep sac --seeds=0..9            trains many seeds and settings, and compares
    tfrl compare 'logs/sac_*' logs/ppo_*   compares runs: a table, a sentence, a figure
    tfrl migrate PATH                      moves programs for TF-Agents, Reverb, Acme
    tfrl list                              lists algorithms, environments and settings
    tfrl cache                             shows, limits, empties compiled programs
    tfrl replay-server                     serves replay to actors and learners
    tfrl completion bash                   prints completion for bash, zsh or fish

`tfrl COMMAND --help` has the flags of a command, and `tfrl train ALGORITHM --help` the
settings of an algorithm. `tfrl --version` has what a report of a fault needs.
"""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tfrl.algorithms import registry
from tfrl.command import errors, parsing, program
from tfrl.system import threads, versions

# The modules of the commands, each with a function of the words that follow: `main`, or
# the one that is named.
COMMANDS = {
    "train": "tfrl.command.train",
    "tune": "tfrl.command.tune",
    "play": "tfrl.command.play",
    "evaluate": "tfrl.command.play:evaluate",
    "verify": "tfrl.command.verify",
    "report": "tfrl.command.report",
    "record": "tfrl.command.record",
    "export": "tfrl.command.export",
    "push": "tfrl.command.export:push",
    "sweep": "tfrl.command.sweep",
    "compare": "tfrl.command.report:compare",
    "migrate": "tfrl.command.migrate",
    "list": "tfrl.command.listing",
    "cache": "tfrl.command.cache",
    "replay-server": "tfrl.command.replay_server",
    "completion": "tfrl.command.main:completion",
}
# The commands whose first word is an algorithm.
_OF_ALGORITHMS = ("train", "sweep", "tune")
_HELP = ("--help", "-h", "help")


def main() -> None:
    """Runs the command that the program's arguments name."""
    program.handle_interrupts()
    threads.set_up()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # As standard error has it.
    name, *words = sys.argv[1:] or ["help"]
    if text := _answer(name):
        with program.ends_in_silence():
            print(text)
        return
    if name.startswith("--algo"):
        _refuse_algo([name, *words])
    if name not in COMMANDS:
        errors.refuse("command", name, COMMANDS, "tfrl --help lists them")
    arguments: list[object] = [words]
    if name in _OF_ALGORITHMS:
        if not words or words[0] in _HELP:
            with program.ends_in_silence():
                print(_help_of(name))
            return
        if words[0].startswith("--algo"):
            _refuse_algo(words, name)
        if words[0] not in registry.CLASSES:
            errors.refuse(
                "algorithm", words[0], registry.CLASSES, "tfrl list says more"
            )
        arguments = [registry.find(words[0]), words[1:]]
    if status := find(name)(*arguments):
        sys.exit(status)


def find(command: str) -> Callable[..., Any]:
    """Returns the function of a command.

    Its module is imported when the command runs, which may need no TensorFlow.
    """
    module, _, function = COMMANDS[command].partition(":")
    found: Callable[..., Any] = getattr(
        importlib.import_module(module), function or "main"
    )
    return found


def _answer(flag: str) -> str:
    """Returns the text that a flag without a command asks for; "" for other words."""
    if flag == "--version":
        return "\n".join(f"{name} {x}" for name, x in versions.found().items())
    return __doc__.strip() if flag in _HELP else ""


def _help_of(command: str) -> str:
    """Returns the help of a command whose first word, an algorithm, is missing."""
    from tfrl.command import listing  # It imports what most commands do not need.

    return (
        f"{(importlib.import_module(COMMANDS[command]).__doc__ or '').strip()}\n\n"
        f"`tfrl {command} ALGORITHM --help` has the flags, and the settings of:\n"
        f"{listing.by_kind()}"
    )


def _refuse_algo(words: list[str], command: str = "train") -> NoReturn:
    """Exits with the command that means `--algo ppo`, as RL Baselines3 Zoo has it."""
    flag, _, value = words[0].partition("=")
    algorithm = value or "".join(words[1:2]) or "ALGORITHM"
    errors.exit_with(
        f"{flag}: the algorithm has no flag; write "
        f"tfrl {command} {algorithm} --env=NAME",
        "tfrl list names the algorithms",
    )


_BASH = """\
_tfrl() {{
  local words="{commands}"
  [ "$COMP_CWORD" -gt 1 ] && words="{flags}"
  [[ "${{COMP_WORDS[1]}}" =~ ^(train|sweep|tune)$ && "$COMP_CWORD" = 2 ]] \\
    && words="{algorithms}"
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _tfrl tfrl"""
_ZSH = "autoload -Uz bashcompinit && bashcompinit\n" + _BASH
_FISH = """\
complete -c tfrl -n __fish_use_subcommand -xa "{commands}"
complete -c tfrl -n "__fish_seen_subcommand_from train sweep tune" -xa "{algorithms}"
complete -c tfrl -n "not __fish_use_subcommand" -a "{flags}\""""
_SHELLS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_FLAGS = ("env", "seed", "seeds", "logdir", "num_environment_steps", "config", "help")


def completion(words: Sequence[str]) -> None:
    """Prints the code with which a shell completes the words of `tfrl`.

    tfrl completion bash >> ~/.bashrc
    tfrl completion zsh >> ~/.zshrc
    tfrl completion fish > ~/.config/fish/completions/tfrl.fish
    """
    text = completion.__doc__
    program.start(parsing.new(), words, _complete, text, takes_words=True)


def _complete(words: Sequence[str]) -> None:
    shell = " ".join(words)
    if shell not in _SHELLS:
        errors.refuse("completion", shell, _SHELLS, "tfrl completion --help says more")
    print(
        _SHELLS[shell].format(
            commands=" ".join(COMMANDS),
            algorithms=" ".join(registry.CLASSES),
            flags=" ".join(f"--{flag}" for flag in _FLAGS),
        )
    )
