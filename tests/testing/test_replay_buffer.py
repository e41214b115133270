"""Each check of `ReplayBufferConformance` finds the fault it is for."""

import pytest
import tensorflow as tf

from tfrl import testing
from tfrl.replay_buffers import tf_uniform_replay_buffer

Good = tf_uniform_replay_buffer.TFUniformReplayBuffer


class CountsOneColumn(Good):
    def _num_frames(self):
        return super()._num_frames() // 2


class MixesLeaves(Good):
    def _get_next(self, *args):
        items, info = super()._get_next(*args)
        return {**items, "image": items["image"] + 1}, info

    def _as_dataset(self, *args):
        return (
            super()
            ._as_dataset(*args)
            .map(lambda items, info: ({**items, "image": items["image"] + 1}, info))
        )


class ForgetsTheOldest(Good):
    def _as_dataset(self, *args):
        return (
            super()
            ._as_dataset(*args)
            .map(
                lambda items, info: (
                    tf.nest.map_structure(
                        lambda leaf: tf.gather(
                            leaf, tf.repeat(tf.argmax(items["number"]), leaf.shape[0])
                        ),
                        items,
                    ),
                    info,
                )
            )
        )


class MixesSteps(Good):
    def _as_dataset(self, *args):
        return (
            super()
            ._as_dataset(*args)
            .map(
                lambda items, info: (
                    tf.nest.map_structure(lambda leaf: leaf[:, ::-1], items),
                    info,
                )
            )
        )


class DrawsAhead(Good):
    """As `prefetch` does, whose thread a busy machine may run too late to be seen."""

    def _as_dataset(self, *args):
        return super()._as_dataset(*args).batch(3).unbatch()


class GathersTheNewestFirst(Good):
    def _gather_all(self):
        return tf.nest.map_structure(lambda leaf: leaf[:, ::-1], super()._gather_all())


class RepeatsItsPass(Good):
    def _single_deterministic_pass_dataset(self, *args):
        return super()._single_deterministic_pass_dataset(*args).repeat(2)


class DoesNotClear(Good):
    def _clear(self):
        pass


class SamplesNothing(Good):
    def _as_dataset(self, *args):
        zeros = tf.nest.map_structure(
            lambda spec: tf.zeros(spec.shape, spec.dtype), self.data_spec
        )
        return tf.data.Dataset.from_tensors((zeros, ())).repeat()


class TakesAnyItems(Good):
    def _add_batch(self, items):
        try:
            return super()._add_batch(items)
        except (ValueError, TypeError):
            return None


class HidesItsFrames(Good):
    def _trackable_children(self, *args, **kwargs):
        return {}


FAULTS = [
    (CountsOneColumn, "test_it_counts_its_frames", "num_frames"),
    (MixesLeaves, "test_samples_are_what_was_written", "a sample/image"),
    (ForgetsTheOldest, "test_every_frame_can_be_drawn", "the frames drawn"),
    (
        MixesSteps,
        "test_sequences_are_successive_frames_of_one_column",
        "successive frames",
    ),
    (DrawsAhead, "test_samples_are_never_older_than_the_last_write", "prefetch"),
    (GathersTheNewestFirst, "test_all_frames_come_out_in_order", "oldest first"),
    (RepeatsItsPass, "test_a_deterministic_pass_shows_each_frame_once", "single"),
    (DoesNotClear, "test_a_cleared_buffer_is_empty", "num_frames"),
    (SamplesNothing, "test_too_few_frames_are_an_error", "no error"),
    (TakesAnyItems, "test_items_unlike_the_spec_are_refused", "a batch twice"),
    (HidesItsFrames, "test_a_checkpoint_holds_the_frames", "restoring"),
    (MixesLeaves, "test_it_samples_in_a_graph_and_traces_once", "a sample/image"),
]


def suite_of(buffer):
    class Suite(testing.ReplayBufferConformance):
        def make_replay_buffer(self, data_spec, batch_size, max_length):
            return buffer(data_spec, batch_size=batch_size, max_length=max_length)

    return Suite()


@pytest.mark.parametrize(
    ("buffer", "check", "message"),
    FAULTS,
    ids=[f"{buffer.__name__}-{check}" for buffer, check, _ in FAULTS],
)
def test_a_fault_is_found(buffer, check, message):
    with pytest.raises(AssertionError, match=message):
        getattr(suite_of(buffer), check)()


def test_every_check_has_a_fault():
    covered = {check for _, check, _ in FAULTS}
    assert covered == set(testing.ReplayBufferConformance.checks())


def test_what_a_buffer_cannot_do_is_passed_over():
    class Suite(testing.ReplayBufferConformance):
        has_deterministic_pass = is_checkpointable = runs_in_graphs = False

    Suite().test_a_deterministic_pass_shows_each_frame_once()
    Suite().test_a_checkpoint_holds_the_frames()
    Suite().test_it_samples_in_a_graph_and_traces_once()


def test_a_suite_without_a_buffer_says_what_to_write():
    with pytest.raises(NotImplementedError, match="make_replay_buffer: not written"):
        testing.ReplayBufferConformance().run_all()
