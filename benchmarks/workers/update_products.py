"""The matrix products of an iteration of SAC or TD3 on Pendulum, and nothing else.

XLA compiles a loop of iterations into one program, as it does with the measured loops.
The networks have no biases and no activations.
"""

from __future__ import annotations

import itertools

import tensorflow as tf

from benchmarks.workers import pendulum_settings, serving

_OBSERVATION, _ACTION = 3, 1


def update(algorithm: str, units: int, batch: int) -> serving.Task:
    """Makes the products of one step and one update of networks with two layers."""
    products = _Products(algorithm, units, batch)
    period = pendulum_settings.TD3_DELAY

    @tf.function(jit_compile=True)
    def loop(passes: tf.Tensor) -> list[tf.Tensor]:
        _, *results = tf.while_loop(
            lambda i, *_: i < passes,
            lambda i, *results: (i + 1, *products.of_iterations(period, results[-1])),
            (tf.constant(0), *products.of_iterations(period, tf.zeros([batch, 1]))),
        )
        return results

    def run(count: int) -> dict[str, int]:
        passes = -(-count // period)
        loop(tf.constant(passes - 1))
        return {"iterations": passes * period}

    return serving.Task(run)


class _Products:
    def __init__(self, algorithm: str, units: int, batch: int) -> None:
        self._is_sac = algorithm == "sac"
        self._batch = batch
        # SAC's actor gives a mean and a deviation.
        outputs = 2 * _ACTION if self._is_sac else _ACTION
        self._actor = _make_layers(_OBSERVATION, units, units, outputs)
        self._critic = _make_layers(_OBSERVATION + _ACTION, units, units, 1)

    def of_iterations(self, num: int, before: tf.Tensor) -> list[tf.Tensor]:
        """Returns the gradients of `num` iterations, and a sum of outputs `[B, 1]`.

        Everything depends on `before`, the sum of the iterations before: XLA would
        compute an independent part only once.
        """
        # Factors make all passes different: XLA computes equal ones only once.
        factors = map(float, itertools.count(1))
        outputs, gradients = [], []

        def forward(layers: list[tf.Tensor], size: int) -> list[tf.Tensor]:
            start = tf.ones([size, layers[0].shape[0]]) + 1e-30 * before[:size]
            activations = [next(factors) * start]
            for layer in layers:
                activations.append(activations[-1] @ layer)
            outputs.append(activations[-1][:, :1])
            return activations

        for i in range(num):
            forward(self._actor, 1)  # The action.
            forward(self._actor, self._batch)  # The next actions, then their values.
            forward(self._critic, self._batch)
            forward(self._critic, self._batch)
            for _ in range(2):
                activations = forward(self._critic, self._batch)
                gradients += _weight_gradients(self._critic, activations)
            if not self._is_sac and i > 0:
                continue
            for _ in range(2 if self._is_sac else 1):
                activations = forward(self._critic, self._batch)
                outputs.append(_input_gradient(self._critic, activations[-1])[:, :1])
            activations = forward(self._actor, self._batch)
            gradients += _weight_gradients(self._actor, activations)
            if self._is_sac:
                forward(self._actor, self._batch)  # For the temperature.
        return [
            *gradients,
            tf.add_n([tf.broadcast_to(o, before.shape) for o in outputs]),
        ]


def _make_layers(*sizes: int) -> list[tf.Tensor]:
    return [tf.random.normal(pair) / 100 for pair in itertools.pairwise(sizes)]


def _weight_gradients(
    layers: list[tf.Tensor], activations: list[tf.Tensor]
) -> list[tf.Tensor]:
    """Returns the gradients of the layers of a forward pass, the last first."""
    slope, gradients = activations[-1], []
    for layer, inputs in zip(reversed(layers), reversed(activations[:-1]), strict=True):
        gradients.append(tf.matmul(inputs, slope, transpose_a=True))
        slope = tf.matmul(slope, layer, transpose_b=True)
    return gradients  # XLA removes the last slope, which nothing needs.


def _input_gradient(layers: list[tf.Tensor], slope: tf.Tensor) -> tf.Tensor:
    for layer in reversed(layers):
        slope = tf.matmul(slope, layer, transpose_b=True)
    return slope
