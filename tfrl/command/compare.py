"""Compares runs: a table, a sentence and a figure, grouped by the settings that differ.

    tfrl compare 'logs/ppo_CartPole-v1_*' logs/dqn_CartPole-v1_0
    tfrl compare logs/sweep_ppo_CartPole-v1 --out=logs/compared
    tfrl compare 'logs/ppo_*' 'logs/sac_*' --normalize=Pendulum-v1:-1200:-150,...

Each word is the folder of a run or of a sweep, or a pattern. With --out it also writes
compare.md, compare.csv and compare.png.
"""

from __future__ import annotations

from collections.abc import Sequence

from absl import flags

from tfrl.algorithms import comparing
from tfrl.command import parsing, program
from tfrl.system import log


def main(words: Sequence[str]) -> None:
    """Compares by folders and flags in some words."""
    given = parsing.new(out="Folder of compare.md, compare.csv, compare.png.")
    text = "Column of metrics.csv; the higher the better."
    parsing.add(given, "metric", "evaluation_return", text)
    parsing.add(given, "overwrite", False, "Replace an older comparison in --out.")
    flags.DEFINE_list(
        "normalize",
        None,
        "ENVIRONMENT:LOW:HIGH of each environment, the scores that become 0 and 1.",
        flag_values=given,
    )
    program.start(
        given, words, lambda folders: _run(given, folders), __doc__, takes_words=True
    )


def _run(given: flags.FlagValues, folders: Sequence[str]) -> None:
    """Prints the comparison, and writes it with `--out`."""
    if not folders:
        raise ValueError(
            "folders: got none, expected some of runs: tfrl compare 'logs/ppo_*', say."
        )
    compared = comparing.compare(
        *folders, metric=given.metric, normalize=_ranges(given.normalize)
    )
    log.say(compared)
    if given.out is not None:
        compared.write(given.out, overwrite=given.overwrite)
        print(f"Outputs: {given.out}")


def _ranges(words: Sequence[str] | None) -> dict[str, tuple[float, float]] | None:
    """Returns the scores that become 0 and 1, by the environment.

    Raises:
      ValueError: A word has another form.
    """
    if words is None:
        return None
    try:
        split = [word.rsplit(":", 2) for word in words]
        return {name: (float(low), float(high)) for name, low, high in split}
    except ValueError:
        raise ValueError(
            f"normalize: got {','.join(words)!r}, expected ENVIRONMENT:LOW:HIGH with "
            "commas; write --normalize=CartPole-v1:20:500, say."
        ) from None
