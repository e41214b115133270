"""Writes the policy of a run for programs without tfrl, and a model card beside it.

    tfrl export logs/sac_Pendulum-v1_0 --format=onnx
    tfrl export logs/dqn_CartPole-v1_0 --format=numpy --output=my_policy

The formats are onnx (policy.onnx, for onnxruntime), litert (policy.tflite, one
observation at a time, for phones), savedmodel (saved_model, for TensorFlow) and numpy
(policy.py and policy.npz, which need only NumPy). onnx and litert need the extra: pip
install 'tfrl[export]'.

It is the greedy policy with the best evaluation, as tfrl evaluate measures it. What is
written is compared with it on 1,000 random observations, and deleted if it acts
otherwise.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from absl import flags

from tfrl.algorithms import learning
from tfrl.command import parsing, program
from tfrl.reports import model_card
from tfrl.system import log, quiet
from tfrl.train.runs import run_files

FORMATS = ["onnx", "litert", "savedmodel", "numpy"]


def main(words: Sequence[str]) -> None:
    """Exports by the flags in some words."""
    given = parsing.new(
        output="The folder to write to, by default export in the folder of the run.",
        env="Gymnasium environment, if it is not that of the run.",
    )
    parsing.add_choice(given, "format", "onnx", FORMATS, "The format.")
    text = "Import the module that the run's environment names."
    parsing.add(given, "trust", False, text)
    text = "Replace an older export of this format."
    parsing.add(given, "overwrite", False, text)
    program.start(
        given, words, lambda folders: _run(given, folders), __doc__, takes_words=True
    )


def _run(given: flags.FlagValues, folders: Sequence[str]) -> None:
    """Writes the policy and its card."""
    folder = only(folders)
    run_files.check_links(folder)
    run_files.check_run(folder)
    output = pathlib.Path(given.output or folder / "export")
    model_card.check_folder(output)
    quiet.quieten_tensorflow()
    # Not at the top: --help does not wait for TensorFlow.
    from tfrl.policies.exporting import checking, formats

    kind = formats.find(given.format)
    algorithm, policy = learning.load_best(folder, given.env, trust=given.trust)
    path = formats.export(
        policy,
        output / kind.file,
        given.format,
        algorithm.world.fit.original_tensors,
        overwrite=given.overwrite,
    )
    size = sum(x.stat().st_size for x in [path, *path.rglob("*")] if x.is_file())
    if given.format == "numpy":
        size += path.with_suffix(".npz").stat().st_size
    card = model_card.write(folder, output)
    log.say(
        f"{path}: {size:,} bytes; acts as the policy does on "
        f"{checking.NUM_OBSERVATIONS:,} observations"
    )
    log.say(f"Card: {card}")


def only(folders: Sequence[str]) -> pathlib.Path:
    """Returns the folder of the only run.

    Raises:
      ValueError: There is none, or there are several.
    """
    if len(folders) != 1:
        got = " ".join(folders) or "none"
        raise ValueError(f"folder: got {got}, expected the folder of one run.")
    return pathlib.Path(folders[0])
