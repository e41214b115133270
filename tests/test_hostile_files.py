"""Files that attack their readers do no harm; see `hostile_files`."""

import pytest

from tests import hostile_files

CASES = hostile_files.cases()
# One file of ten, by a step that goes through all families; the rest is slow.
QUICK = [case for case in CASES if case.family != "run"][::6] + [
    case for case in CASES if case.family == "run"
][::17]


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile") / "run"
    hostile_files.make_run(folder)
    return folder


def test_there_are_200_files_of_all_families():
    assert len({case.name for case in CASES}) == len(CASES) >= 200
    assert {case.family for case in QUICK} == {case.family for case in CASES}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case, id=case.name, marks=[] if case in QUICK else pytest.mark.slow
        )
        for case in CASES
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_hostile_file_runs_nothing_and_is_told(case, run, tmp_path):
    assert hostile_files.try_case(case, run, tmp_path / "here").fault() is None
