import functools
import subprocess
import sys

import pytest

from tfrl.system import system_multiprocessing as multiprocessing
from tfrl.system.default import multiprocessing_core

SCRIPT = """
import functools
from absl import app, flags
from tfrl.system import system_multiprocessing as multiprocessing

flags.DEFINE_integer("number", 0, "A number.")


def main(argv):
    context = multiprocessing.get_context()
    number = flags.FLAGS.number
    with context.Pool(1) as pool:
        print(argv[1:], multiprocessing.initialized())
        print(pool.map(lambda x: x + number, [1, 2]), pool.apply(lambda: number))
    queue = context.Queue()
    process = context.Process(target=lambda q, by: q.put(number + by), args=(queue, 5))
    process.start()
    print(queue.get(timeout=60))
    process.join()


if __name__ == "__main__":
    multiprocessing.handle_main(WRAPPED)
"""


@pytest.mark.parametrize("wrapped", ["functools.partial(app.run, main)", "main"])
def test_a_script_written_for_tf_agents_runs(tmp_path, wrapped):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("WRAPPED", wrapped))
    result = subprocess.run(
        [sys.executable, str(script), "--number=10", "rest"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
        timeout=120,
    )
    assert result.stdout.splitlines() == ["['rest'] True", "[11, 12] 10", "15"], (
        result.stderr
    )


def test_test_main_gets_its_arguments_and_may_be_handled_again():
    add = functools.partial(lambda *args, last: (*args, last))
    assert multiprocessing.handle_test_main(add, 1, 2, last=3) == (1, 2, 3)
    assert multiprocessing.initialized()
    multiprocessing.enable_interactive_mode()


def test_savers_are_kept_once(monkeypatch):
    from tfrl.system import state_savers

    class Saver(multiprocessing.StateSaver):
        def collect_state(self):
            return 1

        def restore_state(self, state):
            pass

    monkeypatch.setattr(state_savers, "_savers", [])
    saver = Saver()
    multiprocessing.enable_interactive_mode(extra_state_savers=[saver])
    multiprocessing.handle_test_main(int, extra_state_savers=[saver])
    assert state_savers.collect_states() == [(saver, 1)]


def test_the_start_method_is_safe_beside_tensorflow_or_the_one_that_is_asked_for():
    assert multiprocessing_core.get_context().get_start_method() != "fork"
    assert multiprocessing.get_context("spawn").get_start_method() == "spawn"
