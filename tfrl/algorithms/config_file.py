"""The settings of an algorithm for an environment, as the file of a `--config` flag.

The default of the scripts is like `--config=.../config_file.py:c51,Acrobot-v1`.
"""

import json
import pathlib

from ml_collections import ConfigDict

from tfrl.algorithms import presets, registry


def get_config(words: str) -> ConfigDict:
    """Returns the settings, which flags of the scripts may override.

    Args:
      words: The algorithm's name and the environment's, with a comma between; or the
        name of a preset; or a JSON file that contains one.
    """
    if words.endswith(".json"):
        row = json.loads(pathlib.Path(words).read_text(encoding="utf-8"))
        return registry.config_of_row(presets.Preset(**row))
    name, comma, environment = words.partition(",")
    return registry.config_for(name, environment) if comma else registry.config_of(name)
