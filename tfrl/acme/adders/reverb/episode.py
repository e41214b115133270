"""Adders of whole episodes."""

from tfrl.adders.episode import EpisodeAdder as EpisodeAdder
from tfrl.adders.episode import PaddedEpisodeAdder as PaddedEpisodeAdder
