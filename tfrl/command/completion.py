"""Prints the code with which a shell completes the words of `tfrl`.

tfrl completion bash >> ~/.bashrc
tfrl completion zsh >> ~/.zshrc
tfrl completion fish > ~/.config/fish/completions/tfrl.fish
"""

from __future__ import annotations

from collections.abc import Sequence

from tfrl.algorithms import registry
from tfrl.command import errors, parsing, program
from tfrl.command import main as main_lib

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


def main(words: Sequence[str]) -> None:
    """Prints the completion of the shell that a word names."""
    program.start(parsing.new(), words, _run, __doc__, takes_words=True)


def _run(words: Sequence[str]) -> None:
    shell = " ".join(words)
    if shell not in _SHELLS:
        errors.refuse("completion", shell, _SHELLS, "tfrl completion --help says more")
    print(
        _SHELLS[shell].format(
            commands=" ".join(main_lib.COMMANDS),
            algorithms=" ".join(registry.CLASSES),
            flags=" ".join(f"--{flag}" for flag in _FLAGS),
        )
    )
