"""`AsyncPolicySaver`: saving in the background."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from tfrl.policies import (
    async_policy_saver,
    fixed_policy,
    policy_saver,
    py_tf_eager_policy,
)
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts


class Saver:
    """Notes what is saved, and waits for permission to go on."""

    def __init__(self, failure=None):
        self.saved = []
        self.may_save = threading.Event()
        self.begun = threading.Event()
        self.failure = failure
        self.other = "attribute"

    def save(self, export_dir):
        self.begun.set()
        assert self.may_save.wait(30)
        if self.failure is not None:
            raise self.failure
        self.saved.append(("policy", export_dir, threading.current_thread().name))

    def save_checkpoint(self, export_dir):
        self.saved.append(("checkpoint", export_dir, threading.current_thread().name))


def make(**kwargs):
    saver = Saver(**kwargs)
    return saver, async_policy_saver.AsyncPolicySaver(saver)


def test_saves_run_in_another_thread_and_one_at_a_time():
    saver, background = make()
    background.save("one")
    assert saver.begun.wait(30)
    background.save("skipped")
    background.save_checkpoint("skipped")
    assert saver.saved == []
    saver.may_save.set()
    background.flush()
    background.save_checkpoint("two")
    background.close()
    assert [entry[:2] for entry in saver.saved] == [
        ("policy", "one"),
        ("checkpoint", "two"),
    ]
    assert all(name != threading.current_thread().name for *_, name in saver.saved)


def test_a_blocking_save_waits_and_is_done_on_return():
    saver, background = make()
    background.save("one")
    assert saver.begun.wait(30)
    threading.Timer(0.05, saver.may_save.set).start()
    background.save("two", blocking=True)
    assert [path for _, path, _ in saver.saved] == ["one", "two"]
    background.close()


@pytest.mark.parametrize("method", ["save", "save_checkpoint", "flush", "close"])
def test_what_a_save_raised_comes_out_of_the_next_call(method):
    saver, background = make(failure=OSError("disk is full"))
    saver.may_save.set()
    background.save("one")
    while not background._running.done():
        saver.begun.wait(0.01)
    arguments = ("two",) if method.startswith("save") else ()
    text = r"the save to one failed with OSError: disk is full"
    with pytest.raises(RuntimeError, match=text) as caught:
        getattr(background, method)(*arguments)
    assert isinstance(caught.value.__cause__, OSError)
    background.close()
    assert saver.saved == []


def test_saving_goes_on_after_a_failure():
    saver, background = make(failure=OSError("disk is full"))
    saver.may_save.set()
    background.save("one")
    with pytest.raises(RuntimeError):
        background.flush()
    saver.failure = None
    background.save("two", blocking=True)
    assert [path for _, path, _ in saver.saved] == ["two"]
    background.close()


def test_after_closing_there_is_no_saving():
    _, background = make()
    background.close()
    background.close()
    with pytest.raises(ValueError, match=r"AsyncPolicySaver that is closed"):
        background.save("one")


def test_everything_else_is_the_wrapped_savers():
    _, background = make()
    assert background.other == "attribute"
    with pytest.raises(AttributeError, match="missing"):
        _ = background.missing
    background.close()


def test_a_policy_and_a_checkpoint_are_written(tmp_path):
    action_spec = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 3)
    observation = tf.TensorSpec([], tf.float32)
    policy = fixed_policy.FixedPolicy(2, ts.time_step_spec(observation), action_spec)
    counter = tf.Variable(3, dtype=tf.int64)
    background = async_policy_saver.AsyncPolicySaver(
        policy_saver.PolicySaver(policy, train_step=counter)
    )
    background.save(str(tmp_path / "policy"))
    background.flush()
    counter.assign(8)
    background.save_checkpoint(str(tmp_path / "checkpoint_8"))
    background.close()
    loaded = py_tf_eager_policy.SavedModelPyTFEagerPolicy(
        str(tmp_path / "policy"), load_specs_from_pbtxt=True
    )
    assert loaded.get_train_step() == 3
    assert loaded.action(ts.restart(np.float32(0))).action == 2
    loaded.update_from_checkpoint(str(tmp_path / "checkpoint_8"))
    assert loaded.get_train_step() == 8
