"""A cut has the values of one time, whatever is changed before, while and after."""

import numpy as np

from tfrl.replay_service.engine.tables import columns


def test_changes_before_and_after_copying_are_undone():
    array = np.arange(6)
    other = np.zeros(2)
    cut = columns.Cut({"array": array[:5], "other": other})
    cut.record("array", np.array([1, 1, 5]))
    array[[1, 1, 5]] = [10, 11, 12]
    copies = cut.copy()
    cut.record("array", np.array([1, 4]))
    array[[1, 4]] = 20
    cut.close()
    cut.correct(copies)
    assert copies["array"].tolist() == [0, 1, 2, 3, 4]
    assert copies["other"].tolist() == [0.0, 0.0]
    assert array.tolist() == [0, 20, 2, 3, 20, 12]


def test_a_closed_cut_records_nothing():
    array = np.arange(3)
    cut = columns.Cut({"array": array})
    copies = cut.copy()
    cut.close()
    cut.record("array", np.array([0]))
    copies["array"][0] = 5
    cut.correct(copies)
    assert copies["array"].tolist() == [5, 1, 2]
