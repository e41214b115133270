"""Reads the summaries that a test has written."""

import collections

import tensorflow as tf
from tensorboard.backend.event_processing import event_accumulator


def scalars(path):
    """Returns the pairs of step and value by tag, of a directory of event files."""
    found = event_accumulator.EventAccumulator(str(path)).Reload()
    read = collections.defaultdict(list)
    for tag in found.Tags()["tensors"]:
        for event in found.Tensors(tag):
            value = tf.make_ndarray(event.tensor_proto)
            if value.ndim == 0:
                read[tag].append((event.step, float(value)))
    return dict(read)


def tags(path):
    """Returns all tags."""
    found = event_accumulator.EventAccumulator(str(path)).Reload()
    return set(found.Tags()["tensors"])
