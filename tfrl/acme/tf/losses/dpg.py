"""The loss of deterministic policies."""

from tfrl.losses.deterministic import dpg as dpg
