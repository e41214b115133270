"""Uploads the export of a run to the Hugging Face Hub, with its model card.

    tfrl export logs/sac_Pendulum-v1_0 --format=onnx
    tfrl push logs/sac_Pendulum-v1_0 --repo=USER/sac-pendulum

It needs the extra, pip install 'tfrl[hub]', and a token: run `hf auth login`, or set
HF_TOKEN. The repository is made if it does not exist, and is private then, unless
--public is given. Only the files in the folder of the export are uploaded, no
checkpoint; links are refused.
"""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
from collections.abc import Sequence
from typing import Any

from absl import flags

from tfrl.command import export, parsing, program
from tfrl.reports import model_card
from tfrl.system import log
from tfrl.train.runs import run_files


def main(words: Sequence[str]) -> None:
    """Uploads by the flags in some words."""
    given = parsing.new(
        repo="The repository, USER/NAME.",
        output="The folder of the export, by default export in the folder of the run.",
    )
    parsing.add(given, "public", False, "Make a new repository public.")
    program.start(
        given, words, lambda folders: _run(given, folders), __doc__, takes_words=True
    )


def _run(given: flags.FlagValues, folders: Sequence[str]) -> None:
    """Uploads the folder, and prints where it is."""
    run = export.only(folders)
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
