"""Compilation of functions in a graph."""

import tensorflow as tf

from tfrl.utils import xla


class Scaled:
    def __init__(self):
        self.factor = tf.Variable(3.0)

    @xla.compile_method_in_graph_mode
    def times(self, x, *, shift):
        """Scales."""
        return {"y": self.factor * x + shift, "eager": tf.executing_eagerly()}


def compiled_calls(graph):
    """The names of functions that the graph calls and XLA is to compile."""
    return [
        node.name
        for node in graph.as_graph_def().node
        if "_XlaMustCompile" in node.attr
    ]


def test_xla_compiles_here():
    assert xla.is_xla_available()
    assert tf.function(xla.is_xla_available)()


def test_methods_are_compiled_in_a_graph_only():
    scaled = Scaled()
    eager = scaled.times(2.0, shift=1.0)
    assert (eager["y"], eager["eager"]) == (7, True)
    assert scaled.times.__doc__ == "Scales."

    concrete = tf.function(
        lambda x: scaled.times(x, shift=1.0)["y"]
    ).get_concrete_function(tf.TensorSpec([]))
    assert concrete(tf.constant(2.0)) == 7
    assert compiled_calls(concrete.graph)


def test_functions_take_and_return_nests():
    @xla.compile_in_graph_mode
    def swap(pair, scale):
        return {"first": pair[1] * scale, "second": (pair[0],)}

    for call in (swap, tf.function(swap)):
        swapped = call((tf.constant(1.0), 2.0), scale=2.0)
        assert swapped["first"] == 4
        assert swapped["second"][0] == 1
