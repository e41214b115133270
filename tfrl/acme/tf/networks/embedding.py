"""Embeddings of observation, action and reward."""

from tfrl.networks.embedding import OAREmbedding as OAREmbedding
