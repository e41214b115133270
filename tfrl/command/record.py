"""Records episodes of a saved policy, to train from with IQL, CQL and the like.

    tfrl record logs/sac_Pendulum-v1_0
    tfrl record --policy=FOLDER --env=Pendulum-v1 --num_episodes=250 --trust
    tfrl record logs/sac_Pendulum-v1_0 --replay

With --replay it records no new episodes: it copies the frames of the run's replay
buffer, those that its policies collected while they learned, from its last checkpoint.

It writes logs/recordings/ENVIRONMENT/RUN.tfrecord, where training looks for data, or
RUN_replay.tfrecord; --output names another file. A file that exists stays, unless
--overwrite is given: then it is replaced when the recording is complete.

The file is a TFRecord in TF-Agents' format, with the spec of its frames next to it;
see tfrl.utils.example_encoding_dataset, and tfrl.datasets.load_recordings.

With --format=minari it writes a dataset that Minari loads by its id, which is
ENVIRONMENT/RUN-v0, or --output; see tfrl.datasets.write_minari.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from absl import flags

from tfrl import datasets, environments
from tfrl.algorithms import off_policy, run_folders
from tfrl.algorithms.recipe import Recipe
from tfrl.command import parsing, saved_policy
from tfrl.system import log, paths, quiet


def main(words: Sequence[str]) -> None:
    """Records by the flags in some words."""
    given = saved_policy.define_flags()
    parsing.add(given, "num_episodes", 100, "Episodes to record.")
    text = "tfrl for a file of TF-Agents' format, minari for a dataset of Minari's."
    parsing.add_choice(given, "format", "tfrl", ["tfrl", "minari"], text)
    text = "The file, by default in logs/recordings, or the dataset's id, to write."
    parsing.add(given, "output", None, text)
    parsing.add(given, "overwrite", False, "Replace the file if it exists.")
    text = "Copy the frames of the run's replay buffer instead."
    parsing.add(given, "replay", False, text)
    saved_policy.start(given, words, lambda folder: _run(given, folder), __doc__)


def _run(given: flags.FlagValues, folder: str | None) -> None:
    """Writes the file, and prints the returns of the whole episodes in it."""
    saved = saved_policy.find(given, folder)
    run = pathlib.Path(folder or saved.path.parent)
    output = _output(given, run, saved.env)
    quiet.quieten_tensorflow()
    environment = saved.make_environment(1)
    has_config = (run / "config.json").exists()
    recipe = run_folders.find_recipe(run) if has_config else None
    recordings = datasets.recordings
    if given.replay:
        frames = _replayed(environment, run, recipe)
    else:
        policy = saved.load(environment)
        frames = recordings.play(environment, policy, given.num_episodes, saved.seed)
    if given.format == "minari":
        num_frames = datasets.minari_files.write_from(
            environment,
            frames,
            output,
            # A replay buffer may begin long after the episode that was seeded.
            seed=None if given.replay else saved.seed,
            algorithm_name=recipe.algorithm.name if recipe else "",
        )
        output = str(datasets.minari_folder(output))
        written = datasets.load_minari(output)
    else:
        spec = recordings.frame_spec(environment)
        num_frames = recordings.write(frames, output, spec)
        written = datasets.load_recordings(output)
    returns = datasets.episode_returns(written)
    text = (
        f"{output}: {num_frames:,} frames, {len(returns)} whole episodes of {saved.env}"
    )
    if len(returns):
        low, high = returns.min(), returns.max()
        text += f", mean return {returns.mean():.1f}, from {low:.1f} to {high:.1f}"
    log.say(text)


def _output(given: flags.FlagValues, run: pathlib.Path, environment: str) -> str:
    """Returns the file, or the id of the dataset, to write.

    Raises:
      ImportError: Minari is to write, and is not installed.
      ValueError: It exists, and is not to be replaced, or is no id of Minari's.
    """
    name = f"{run.resolve().name}{'_replay' * given.replay}"
    if given.format == "minari":
        output = given.output or datasets.minari_files.default_id(environment, name)
        if datasets.minari_folder(output, "--output").exists() and not given.overwrite:
            raise ValueError(
                f"--output: got {output!r}, where there is a dataset already; give "
                "--overwrite to replace it, or another --output."
            )
    else:
        folder = paths.in_folder_of(paths.RECORDINGS, environment)
        output = given.output or f"{folder}/{name}.tfrecord"
        datasets.recordings.check_replaceable(
            "--output", output, overwrite=given.overwrite
        )
    return str(output)


def _replayed(
    environment: environments.TFEnvironment, run: pathlib.Path, recipe: Recipe | None
) -> Iterator[Any]:
    """Returns the frames of the replay buffer in a run's last checkpoint."""
    algorithm = None
    if recipe is not None and recipe.settings.get("num_envs") == 1:
        algorithm = recipe.make(environment)
    if not isinstance(algorithm, off_policy.OffPolicy):
        raise ValueError(
            f"--replay: got the run {str(run)!r}, expected one with a replay buffer of "
            "one environment, as `tfrl train sac` makes it with --num_envs=1."
        )
    return datasets.recordings.from_checkpoint(
        run / "checkpoints",
        datasets.recordings.frame_spec(environment),
        algorithm.replay_capacity,
        algorithm.row_format(),
    )
