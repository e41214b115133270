"""Parts that algorithms share."""

import keras
import pytest

import tfrl
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


def test_a_text_as_encoder_is_a_setting_and_an_object_a_part():
    by_text = tfrl.SAC("Pendulum-v1", encoder="simba")
    assert by_text.settings["encoder"] == "simba"
    assert by_text.own_encoder is None
    model = keras.Sequential([keras.layers.Dense(4)])
    by_object = tfrl.SAC("Pendulum-v1", encoder=model)
    assert by_object.settings["encoder"] == "mlp"
    assert by_object.own_encoder is model
    with pytest.raises(ValueError, match="encoder: expected one of 'mlp', 'simba'"):
        tfrl.SAC("Pendulum-v1", encoder="foo")
    assert "encoder" not in tfrl.CrossQ.setting_fields()


@pytest.mark.parametrize("kind", [tfrl.SAC, tfrl.TD3])
def test_simba_makes_residual_blocks_and_adamw_decays_their_weights(kind):
    sizes = [n for n in kind.setting_fields() if n.endswith("fc_layer_params")]
    made = kind(
        "Pendulum-v1",
        encoder="simba",
        weight_decay=0.02,
        **dict.fromkeys(sizes, (4, 4)),
        preset="",
    )
    for network in made.make_networks().values():
        network.create_variables()
        shapes = [tuple(v.shape)[-2:] for v in network.trainable_variables]
        assert shapes.count((4, 16)) == shapes.count((16, 4)) == 2
    arguments = made.agent_arguments()
    for name in ("actor_optimizer", "critic_optimizer"):
        assert arguments[name].weight_decay == 0.02
