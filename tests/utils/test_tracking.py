"""Attributes that keep the nests they are given."""

import keras
import pytest
import tensorflow as tf

from tfrl.utils import tracking


class Module(tf.Module, tracking.Untracked):
    pass


class Layer(keras.layers.Layer, tracking.Untracked):
    pass


@pytest.mark.parametrize("kind", [Module, Layer])
def test_a_nest_stays_the_same_object(kind):
    tracked, untracked = ([1, (2,)] for _ in range(2))
    holder = kind()
    holder.tracked = tracked
    holder._set_untracked("untracked", untracked)
    assert holder.untracked is untracked
    assert holder.tracked is not tracked


def test_checkpoints_do_not_look_into_it():
    holder = Module()
    holder._set_untracked("hidden", [tf.Variable(1)])
    holder.seen = tf.Variable(2)
    children = tf.train.TrackableView(holder).children(holder)
    assert set(children) == {"seen"}
