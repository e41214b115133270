"""`EnvironmentLoop`: an actor in an environment, episode after episode."""

from tfrl.environment_loop import EnvironmentLoop as EnvironmentLoop
from tfrl.environment_loop import EnvLoopObserver as EnvLoopObserver
