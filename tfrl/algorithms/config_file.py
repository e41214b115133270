"""The settings of an algorithm for an environment, as the file of a `--config` flag.

`--config=.../config_file.py:c51,Acrobot-v1` is what the scripts take by default.
"""

from ml_collections import ConfigDict

from tfrl.algorithms import registry


def get_config(words: str) -> ConfigDict:
    """Returns the settings, which flags of the scripts may override.

    Args:
      words: The algorithm's name and the environment's, with a comma between; or the
        name of a row of settings.
    """
    name, comma, environment = words.partition(",")
    return registry.config_for(name, environment) if comma else registry.config_of(name)
