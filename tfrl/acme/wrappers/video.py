"""Videos of episodes."""

from tfrl.wrappers.video import VideoWrapper as VideoWrapper
