"""Files that attack do no harm; see `hostile_files` and `hostile_folders`."""

import pickle

import pytest
import tensorflow as tf

from tests import hostile_files, hostile_folders

CASES = hostile_files.cases()
FAMILIES = sorted({case.family for case in CASES})
# A third of the files is quick, but few of those that take a whole run.
QUICK = {
    case.name
    for family in FAMILIES
    for case in [case for case in CASES if case.family == family][
        :: 60 if family == "run" else 3
    ]
}
FOLDERS = hostile_folders.cases()
QUICK_FOLDERS = {
    *("export/export/agent.mp4/file", "export/export/folder", "resume/lock/file"),
    *("report/report.html/file", "compare/metrics.csv/file", "replay/array"),
    *("push/export/notes.txt/file", "push/terminal", "verify/data", "verify/setting"),
}


def parameters(cases, quick):
    return [
        pytest.param(
            case, id=case.name, marks=[] if case.name in quick else pytest.mark.slow
        )
        for case in cases
    ]


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile") / "run"
    hostile_files.make_run(folder)
    return folder


def test_there_are_200_files_of_all_families():
    assert len({case.name for case in CASES}) == len(CASES) >= 200
    assert len(FAMILIES) == 8
    assert len(QUICK) >= len(CASES) / 10


@pytest.mark.parametrize("case", parameters(CASES, QUICK))
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


def test_there_are_60_folders_for_all_commands():
    names = {case.name for case in FOLDERS}
    assert len(names) == len(FOLDERS) >= 60
    assert names > QUICK_FOLDERS
    assert len({name.partition("/")[0] for name in names}) == 14


@pytest.mark.parametrize("case", parameters(FOLDERS, QUICK_FOLDERS))
@pytest.mark.filterwarnings("ignore")
def test_nothing_outside_of_a_folder_is_touched(case, run, tmp_path):
    outcome = hostile_folders.try_case(case, run, tmp_path / "here")
    assert outcome.fault() is None


def test_the_watch_sees_what_would_be_touched(run, tmp_path):
    """Otherwise it would say nothing that no command touches it."""

    def link(folder, home):
        (folder / "read").symlink_to(home / "own")
        (folder / "new").symlink_to(home / "new")

    def read(folder):
        (folder / "read").read_bytes()

    def write(folder):
        (folder / "new").write_text("x")
        print("\x1b")

    for act, changed in ((read, 0), (write, 1)):
        case = hostile_folders.Case("x", link, act)
        outcome = hostile_folders.try_case(case, run, tmp_path / act.__name__)
        assert outcome.changed == changed
        assert outcome.touched
        assert outcome.fault()
    assert "it said" in outcome._replace(touched=[], changed=0).fault()
