"""Noise on actions."""

from tfrl.networks.noise import ClippedGaussian as ClippedGaussian
