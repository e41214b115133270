"""Loads bsuite's experiments, small tasks that each test one ability of an agent.

Osband et al. 2020, "Behaviour Suite for Reinforcement Learning". Needs the extra:
`pip install 'tfrl[bsuite]'`. The mnist experiments download their pictures.
"""

from __future__ import annotations

import difflib

from tfrl.environments import dm_env_wrapper, extras, py_environment


def is_available() -> bool:
    """Whether the extra is installed."""
    return extras.is_installed("bsuite")


def load(
    bsuite_id: str,
    record: bool = True,
    save_path: str | None = None,
    logging_mode: str = "csv",
    overwrite: bool = False,
) -> py_environment.PyEnvironment:
    """Makes one setting of an experiment.

    Args:
      bsuite_id: The experiment and its setting, such as "deep_sea/7".
      record: Whether bsuite records the results for its analysis.
      save_path: The folder of the records.
      logging_mode: "csv", or "terminal" to print the results.
      overwrite: Whether existing records are replaced.

    Raises:
      ImportError: If the extra is not installed.
      ValueError: If there is no such id or mode, or the folder is missing or holds
        records of this id.
    """
    check_id(bsuite_id)
    from bsuite import bsuite

    if not record:
        return dm_env_wrapper.DmEnvWrapper(bsuite.load_from_id(bsuite_id))
    if logging_mode not in ("csv", "terminal"):
        raise ValueError(
            f"logging_mode: got {logging_mode!r}, expected 'csv' or 'terminal'; use "
            "record=False to record nothing."
        )
    if logging_mode == "csv" and not save_path:
        raise ValueError(
            f"save_path: got {save_path!r}, expected a folder to record to; give one, "
            "or record=False to record nothing."
        )
    return dm_env_wrapper.DmEnvWrapper(
        bsuite.load_and_record(
            bsuite_id,
            save_path or "",
            logging_mode=logging_mode,
            overwrite=overwrite,
        )
    )


def check_id(bsuite_id: str) -> None:
    """Checks that there is a setting of an experiment, without TensorFlow.

    Args:
      bsuite_id: See `load`.

    Raises:
      ImportError: If the extra is not installed.
      ValueError: If there is no such id.
    """
    extras.require("suite_bsuite", "pip install 'tfrl[bsuite]'", "bsuite")
    from bsuite import sweep

    if bsuite_id not in sweep.SETTINGS:
        near = difflib.get_close_matches(bsuite_id, sweep.SWEEP, n=3) or sweep.SWEEP[:1]
        raise ValueError(
            f"bsuite_id: got {bsuite_id!r}, expected an experiment and the number of "
            f"its setting; did you mean {' or '.join(near)}?"
        )
