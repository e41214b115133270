import keras
import pytest
import tensorflow as tf

from tfrl.networks.construction import seeding


class WithoutArguments(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = keras.layers.Dense(3)
        self.out = keras.layers.Dense(2)

    def call(self, inputs):
        return self.out(self.hidden(inputs))


class WithUnits(keras.Model):
    def __init__(self, units=8):
        super().__init__()
        self.units = units
        self.hidden = keras.layers.Dense(units)

    def call(self, inputs):
        return self.hidden(inputs)


class WithConfig(WithUnits):
    def get_config(self):
        return {**super().get_config(), "units": self.units}


class LayerWithUnits(keras.layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.units = units


def test_a_model_without_arguments_is_copied():
    model = WithoutArguments()
    model(tf.ones([1, 4]))
    copied = seeding.copy_layer(model)
    assert type(copied) is WithoutArguments
    assert not copied.built
    assert copied(tf.ones([1, 4])).shape == (1, 2)


def test_a_layer_that_takes_no_arguments_of_keras_is_copied():
    layer = LayerWithUnits(5)
    layer.trainable = False
    copied = seeding.copy_layer(layer)
    assert copied.units == 5
    assert not copied.trainable


def test_a_model_with_get_config_is_copied():
    assert seeding.copy_layer(WithConfig(5)).units == 5


@pytest.mark.parametrize("model", [WithUnits(5), WithUnits(units=5), WithUnits()])
def test_a_model_without_get_config_is_told_what_to_add(model):
    # Keras records the default of 8 for all three.
    with pytest.raises(
        TypeError,
        match=r"got a WithUnits that cannot be copied.* arguments: units; add to "
        r"WithUnits:\n    def get_config\(self\):\n"
        r'        return {"units": self.units}',
    ):
        seeding.copy_layer(model)
