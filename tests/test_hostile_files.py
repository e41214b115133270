"""Files that attack their readers do no harm; see `hostile_files`."""

import pickle

import pytest
import tensorflow as tf

from tests import hostile_files

CASES = hostile_files.cases()
FAMILIES = sorted({case.family for case in CASES})
# A tenth of the files is quick, fewer of those that take a whole run; the rest is slow.
QUICK = {
    case.name
    for family in FAMILIES
    for case in [case for case in CASES if case.family == family][
        :: 20 if family == "run" else 5
    ]
}


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile") / "run"
    hostile_files.make_run(folder)
    return folder


def test_there_are_200_files_of_all_families():
    assert len({case.name for case in CASES}) == len(CASES) >= 200
    assert len(FAMILIES) == 8
    assert len(QUICK) >= len(CASES) / 10


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case, id=case.name, marks=[] if case.name in QUICK else pytest.mark.slow
        )
        for case in CASES
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_hostile_file_runs_nothing_and_is_told(case, run, tmp_path):
    assert hostile_files.try_case(case, run, tmp_path / "here").fault() is None


def test_the_files_attack_a_reader_that_trusts_them(tmp_path, monkeypatch):
    """Otherwise it would say nothing that no reader of tfrl ran them."""
    monkeypatch.chdir(tmp_path)
    mark = tmp_path / "EXECUTED"
    pickle.loads(hostile_files.PICKLE).close()
    assert mark.exists()
    mark.unlink()
    (case,) = [case for case in CASES if case.name == "policy/play"]
    (tmp_path / "given").mkdir()
    case.make(tmp_path / "given")
    assert not mark.exists()
    tf.saved_model.load(str(tmp_path / "given" / "policy"))
    assert mark.exists()
