import keras
import pytest
import tensorflow as tf

from tfrl.networks import layer_utils, sequential


@pytest.fixture(scope="module")
def net():
    inner = sequential.Sequential([keras.layers.Dense(3, name="deep")], name="inner")
    made = sequential.Sequential(
        [keras.layers.Dense(2, name="wide", trainable=False), inner],
        input_spec=tf.TensorSpec([4]),
    )
    made.create_variables()
    return made


def lines_of(net, **kwargs):
    lines = []
    layer_utils.print_summary(net, print_fn=lines.append, **kwargs)
    return lines


def names(lines):
    return [
        line.split(" (")[0] for line in lines if "(Dense)" in line or "(Seq" in line
    ]


def test_layers_and_counts(net):
    lines = lines_of(net)
    assert names(lines) == ["wide", "inner"]
    assert "(4, 2) (2,)" in lines[4]
    assert lines[4].endswith("10")
    assert lines[-3:] == [
        "parameters: 19",
        "trainable parameters: 9",
        "non-trainable parameters: 10",
    ]


def test_nested_layers(net):
    assert names(lines_of(net, expand_nested=True)) == ["wide", "inner", "  deep"]


def test_trainable_column(net):
    lines = lines_of(net, show_trainable=True)
    assert [line[-1] for line in lines if "(4, 2)" in line or "(2, 3)" in line] == [
        "N",
        "Y",
    ]


def test_range_of_layers(net):
    assert names(lines_of(net, layer_range=["inn.*", "inner"])) == ["inner"]
    with pytest.raises(ValueError, match=r"layer_range: got .*expected names"):
        lines_of(net, layer_range=["wide", "none"])


def test_width_and_columns(net):
    lines = lines_of(net, line_length=40, positions=[10, 30, 40])
    assert lines[1] == "_" * 40
    assert (
        lines_of(net, positions=[0.2, 0.5, 1.0], line_length=100)[2].index("Var") == 20
    )
    with pytest.raises(ValueError, match=r"positions: got .* expected 3"):
        lines_of(net, positions=[0.5, 1.0])
