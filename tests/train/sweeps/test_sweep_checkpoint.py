"""The file of a sweep's checkpoint; test_sweep.py resumes sweeps."""

import ml_dtypes
import numpy as np
import pytest

from tfrl.savers import whole_checkpoints
from tfrl.train.sweeps import sweep_checkpoint


@pytest.fixture
def progress():
    rows = [[np.full(2, i, dtype) for dtype in "fqf"] for i in range(3)]
    return sweep_checkpoint.SweepMeasurements([5, 10, 12], rows, [9.0, 2.0, 1.0])


def test_a_file_holds_what_was_saved_last(tmp_path, progress):
    saved = sweep_checkpoint.SweepCheckpoint(tmp_path / "new", {"seeds": (1, 2)})
    assert saved.restore() is None
    arrays = [np.arange(6).reshape(2, 3), np.array([1, 2], ml_dtypes.bfloat16)]
    saved.save(progress, [np.zeros(2)])
    saved.save(progress, arrays)
    found, (first, second) = saved.restore()
    assert (found.iterations, found.seconds) == ([5, 10, 12], [9.0, 2.0, 1.0])
    np.testing.assert_array_equal(found.columns(), progress.columns())
    np.testing.assert_array_equal(first, arrays[0])
    np.testing.assert_array_equal(second.view(ml_dtypes.bfloat16), arrays[1])


def test_a_damaged_file_is_an_error(tmp_path, progress):
    saved = sweep_checkpoint.SweepCheckpoint(tmp_path, {})
    saved.save(progress, [np.arange(1000)])
    path = tmp_path / "sweep.npz"
    content = path.read_bytes()
    for damaged in (
        content[:-700],
        content[:6000] + b"x" + content[6001:],
        b"",
    ):
        path.write_bytes(damaged)
        with pytest.raises(
            whole_checkpoints.CheckpointError,
            match=r"sweep.npz: cannot be read .*remove",
        ):
            saved.restore()


def test_no_damage_goes_unseen(tmp_path, progress):
    saved = sweep_checkpoint.SweepCheckpoint(tmp_path, {"seeds": (1, 2)})
    saved.save(progress, [np.arange(5), np.ones([2, 3])])
    path = tmp_path / "sweep.npz"
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(len(content), size=400):
        damaged = bytearray(content)
        damaged[place] ^= rng.integers(1, 256)
        path.write_bytes(damaged)
        with pytest.raises(whole_checkpoints.CheckpointError, match="cannot be read"):
            saved.restore()
        path.write_bytes(content[:place])
        with pytest.raises(whole_checkpoints.CheckpointError, match="cannot be read"):
            saved.restore()


def test_a_file_of_other_settings_is_refused(tmp_path, progress):
    sweep_checkpoint.SweepCheckpoint(tmp_path, {"gamma": [0.5]}).save(progress, [])
    with pytest.raises(
        ValueError,
        match=r"gamma: got \[0\.6\], but .* sweep with \[0\.5\]",
    ):
        sweep_checkpoint.SweepCheckpoint(tmp_path, {"gamma": (0.6,)}).restore()


@pytest.mark.parametrize("name", ["run*", "run?", "[r]un1", "run\\1"])
def test_a_directory_can_have_any_name(tmp_path, progress, name):
    neighbour = sweep_checkpoint.SweepCheckpoint(tmp_path / "run1", {})
    neighbour.save(progress, [np.ones(3)])
    saved = sweep_checkpoint.SweepCheckpoint(tmp_path / name, {})
    assert saved.restore() is None
    saved.save(progress, [np.zeros(2)])
    again = sweep_checkpoint.SweepCheckpoint(tmp_path / name, {})
    assert [array.shape for array in again.restore()[1]] == [(2,)]
    assert [array.shape for array in neighbour.restore()[1]] == [(3,)]
