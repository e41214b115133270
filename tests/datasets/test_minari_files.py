"""Files in the layout of Minari 0.5, as its own HDF5Storage writes them."""

import builtins

import numpy as np
import pytest

from tfrl import datasets
from tfrl.trajectories import trajectory

h5py = pytest.importorskip("h5py")


def write(folder, episodes, **changes):
    (folder / "data").mkdir(parents=True)
    with h5py.File(folder / "data" / "main_data.hdf5", "w") as file:
        for i, (length, terminated) in enumerate(episodes):
            group = file.create_group(f"episode_{i}")
            group.attrs.update({"id": i, "total_steps": length})
            rows = np.arange(length + 1, dtype=np.float64) + 10 * i
            arrays = {
                "observations/position": rows,
                "observations/pair/_index_0": rows[:, None].astype(np.float32),
                "observations/pair/_index_1": rows.astype(np.int64),
                "actions": np.ones((length, 2), np.float32),
                "rewards": np.full(length, i + 0.5),
                "terminations": np.arange(length) == (length - 1 if terminated else -1),
                "truncations": np.arange(length) == (-1 if terminated else length - 1),
                "infos/speed": np.zeros(length + 1),
                **changes,
            }
            for name, array in arrays.items():
                group.create_dataset(name, data=array)
    return folder


def test_a_termination_and_a_truncation(tmp_path):
    frames = datasets.load_minari(write(tmp_path / "a-v0", [(2, True), (1, False)]))
    held = list(frames.as_numpy_iterator())
    assert isinstance(held[0], trajectory.Trajectory)
    assert [int(f.step_type) for f in held] == [0, 1, 2, 0, 2]
    assert [int(f.next_step_type) for f in held] == [1, 2, 0, 2, 0]
    assert [float(f.discount) for f in held] == [1, 0, 1, 1, 1]
    assert [float(f.reward) for f in held] == [0.5, 0.5, 0, 1.5, 0]
    assert [float(f.observation["position"]) for f in held] == [0, 1, 2, 10, 11]
    assert held[0].observation["position"].dtype == np.float32
    assert [int(f.observation["pair"][1]) for f in held] == [0, 1, 2, 10, 11]
    assert held[4].observation["pair"][0].shape == (1,)
    np.testing.assert_array_equal(datasets.episode_returns(frames), [1, 1.5])


def test_a_spec_decides_about_dtypes_and_shapes(tmp_path):
    folder = write(tmp_path / "a-v0", [(2, True)])
    spec = trajectory.Trajectory(
        *datasets.load_minari(folder / "data" / "main_data.hdf5").element_spec
    )
    half = spec._replace(action=type(spec.action)([2], np.float16))
    frame = next(datasets.load_minari(folder, half).as_numpy_iterator())
    assert frame.action.dtype == np.float16
    with pytest.raises(ValueError, match=r"expected \(3,\)"):
        datasets.load_minari(
            folder, spec._replace(action=type(spec.action)([3], np.float32))
        )
    with pytest.raises(ValueError, match="not nested as spec is"):
        datasets.load_minari(folder, spec._replace(observation=spec.reward))


def test_what_cannot_be_read_is_refused(tmp_path, monkeypatch):
    for path, absent in (
        (tmp_path, "data/main_data.hdf5"),
        (tmp_path / "hopper", "file or folder"),
    ):
        with pytest.raises(FileNotFoundError) as error:
            datasets.load_minari(path)
        assert str(error.value) == (
            f"path: got {str(path)!r}, where there is no {absent}, expected the folder "
            "of a dataset of Minari's, in its format hdf5; fetch one with `minari "
            "download NAME`, to ~/.minari/datasets/NAME."
        )
    with pytest.raises(ValueError, match="no group episode_0"):
        datasets.load_minari(write(tmp_path / "empty-v0", []))
    wrong = write(tmp_path / "wrong-v0", [(2, True)], actions=np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"episode_0: actions: got length \[3\]"):
        datasets.load_minari(wrong)

    def without_h5py(name, *args, plain=builtins.__import__):
        if name == "h5py":
            raise ImportError(name)
        return plain(name, *args)

    monkeypatch.setattr(builtins, "__import__", without_h5py)
    with pytest.raises(ImportError, match=r"tfrl\[minari\]"):
        datasets.load_minari(wrong)
