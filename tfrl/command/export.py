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

import functools
import importlib
import importlib.util
import pathlib
from collections.abc import Sequence
from typing import Any

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
    run = functools.partial(_run, given)
    program.start(given, words, run, __doc__, takes_words=True)


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


def push(words: Sequence[str]) -> None:
    """Uploads the export of a run to the Hugging Face Hub, with its model card.

        tfrl export logs/sac_Pendulum-v1_0 --format=onnx
        tfrl push logs/sac_Pendulum-v1_0 --repo=USER/sac-pendulum

    It needs the extra, pip install 'tfrl[hub]', and a token: run `hf auth login`, or
    set HF_TOKEN. The repository is made if it does not exist, and is private then,
    unless --public is given. Only the files in the folder of the export are uploaded,
    no checkpoint; links are refused.
    """
    given = parsing.new(
        repo="The repository, USER/NAME.",
        output="The folder of the export, by default export in the folder of the run.",
    )
    parsing.add(given, "public", False, "Make a new repository public.")
    run = functools.partial(_push, given)
    program.start(given, words, run, push.__doc__, takes_words=True)


def _push(given: flags.FlagValues, folders: Sequence[str]) -> None:
    """Uploads the folder, and prints where it is."""
    run = only(folders)
    run_files.check_links(run)
    folder = pathlib.Path(given.output or run / "export")
    run_files.check_tree(folder)
    if not given.repo:
        raise ValueError("--repo: got none, expected a repository; give USER/NAME.")
    if not model_card.is_card(folder / model_card.NAME):
        run_files.check_run(run)
        raise ValueError(
            f"--output: got {str(folder)!r}, where there is no export with its card; "
            f"run tfrl export {run} first."
        )
    if importlib.util.find_spec("huggingface_hub") is None:
        raise ImportError(
            "huggingface_hub is missing, which uploads; install the extra: pip install "
            "'tfrl[hub]'."
        )
    hub: Any = importlib.import_module("huggingface_hub")
    api = hub.HfApi()
    try:
        url = api.create_repo(given.repo, private=not given.public, exist_ok=True)
        api.upload_folder(
            repo_id=given.repo,
            folder_path=str(folder),
            commit_message=f"Upload {run.resolve().name}",
        )
    except Exception as error:  # Of the Hub, the network or the client's packages.
        reason = (str(error).splitlines() or [""])[0].rstrip(".")
        raise ValueError(
            f"--repo: got {given.repo!r}, to which nothing could be uploaded "
            f"({type(error).__name__}: {reason}); check the name, USER/NAME, the "
            "token, by hf auth whoami, and the network."
        ) from error
    log.say(f"{folder} is at {url}")
