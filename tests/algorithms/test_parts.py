"""Parts that algorithms share."""

import pytest

from tfrl.algorithms import registry
from tfrl.compilation import internals


def activations(name, **settings):
    """Returns the names of the activations in an algorithm's networks."""
    made = registry.find(name)(**settings)
    return {
        layer.activation.__name__
        for network in made.make_networks().values()
        if network is not None
        for layer in internals.flatten_layers(network)
        if callable(getattr(layer, "activation", None))
    }


@pytest.mark.parametrize(
    ("name", "usual"),
    [
        ("pqn", "relu"),
        ("r2d2", "relu"),
        ("sac", "relu"),
        ("a2c", "tanh"),
        ("mpo", "elu"),
    ],
)
def test_the_hidden_layers_have_the_activation_of_the_settings(name, usual):
    assert usual in activations(name)
    changed = activations(name, activation="softsign")
    assert "softsign" in changed
    assert changed <= (activations(name) | {"softsign"}) - {usual, "relu"}
