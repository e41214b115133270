"""The Huber loss."""

from tfrl.losses.elementwise import huber as huber
