"""Re-exports `networks.CriticRnnNetwork` at TF-Agents' path."""

from tfrl.networks.critic_rnn_network import CriticRnnNetwork
from tfrl.networks.lstm_encoding_network import (
    KERAS_LSTM_FUSED as KERAS_LSTM_FUSED_IMPLEMENTATION,
)

__all__ = ["KERAS_LSTM_FUSED_IMPLEMENTATION", "CriticRnnNetwork"]
