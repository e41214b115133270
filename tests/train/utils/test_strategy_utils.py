import pytest
import tensorflow as tf
from absl import flags

from tfrl.train.utils import strategy_utils


def test_without_a_gpu_it_is_the_default_strategy():
    strategy = strategy_utils.get_strategy(tpu=None, use_gpu=False)
    assert strategy is tf.distribute.get_strategy()


def test_gpus_are_mirrored(monkeypatch):
    monkeypatch.setattr(tf.distribute, "MirroredStrategy", lambda: "mirrored")
    assert strategy_utils.get_strategy(tpu=False, use_gpu=True) == "mirrored"


def test_tpus_are_refused():
    with pytest.raises(NotImplementedError, match="does not train on TPUs"):
        strategy_utils.get_strategy("local", use_gpu=False)
    with pytest.raises(ValueError, match="expected one of them at most"):
        strategy_utils.get_strategy("local", use_gpu=True)


def test_scripts_that_import_it_have_its_flags():
    assert strategy_utils.USE_GPU.name == "use_gpu"
    assert flags.FLAGS["use_gpu"].default is False
    assert flags.FLAGS[strategy_utils.TPU.name].default is None
