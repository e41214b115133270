"""What a supervisor does about members that end; most of them are no processes."""

import os
import signal
import threading
import time

import pytest

from tfrl.system import child_errors, supervisor
from tfrl.system.child_process import Ending, FunctionProcess

KILLED = Ending("was killed by SIGKILL")
FINISHED = Ending("has finished", has_finished=True)


class Scripted:
    """A process that ends, at each poll, as its script says."""

    def __init__(self, name, endings, events):
        self.pid = 7
        self._name, self._endings, self._events = name, iter(endings), events
        events.append(("start", name))

    def poll(self):
        return next(self._endings, None)

    def stop(self, grace):
        self._events.append(("stop", self._name))


def member(name, scripts, events):
    """A member whose n-th start has the n-th script, and later ones the last."""

    def start(starts):
        return Scripted(name, scripts[min(starts, len(scripts) - 1)], events)

    return supervisor.Member(name, start)


def raised(error):
    wrapped = child_errors.ChildRaisedError(f"raised {error}")
    wrapped.original = error
    return Ending("raised an exception", wrapped)


def supervise(*members, said=None, **arguments):
    say = [].append if said is None else said.append
    supervisor.supervise(members, "main", say=say, **arguments)


def test_others_are_stopped_after_the_main_member_in_reverse_order():
    events = []
    supervise(
        member("server", [[]], events),
        member("actor", [[]], events),
        member("main", [[None, FINISHED]], events),
    )
    starts = [("start", name) for name in ("server", "actor", "main")]
    assert events == [*starts, *[("stop", n) for n in ("main", "actor", "server")]]


def test_a_killed_member_is_started_again_while_the_others_go_on():
    events, said = [], []
    supervise(
        member("actor", [[KILLED], []], events),
        member("main", [[None] * 3 + [FINISHED]], events),
        said=said,
    )
    assert events.count(("start", "actor")) == 2
    assert events.count(("start", "main")) == 1
    assert said == [
        "actor: its process 7 was killed by SIGKILL. It is started again now; the "
        "others continue."
    ]


def test_a_killed_main_member_is_started_again_too():
    events = []
    supervise(member("main", [[KILLED], [FINISHED]], events))
    assert events.count(("start", "main")) == 2


def test_a_member_that_is_killed_again_and_again_ends_the_run():
    events = []
    with pytest.raises(RuntimeError, match="for the 2th time within 600 s; find the"):
        supervise(
            member("actor", [[KILLED]], events),
            member("main", [[]], events),
            limits=supervisor.Limits(most_restarts=1),
        )
    assert events[-1] == ("stop", "main")


def test_the_last_line_has_the_reason_for_which_a_member_was_started_again():
    lost = raised(ConnectionError("nobody answers"))
    with pytest.raises(RuntimeError) as error:
        supervise(
            member("main", [[lost]], []),
            recovers=(ConnectionError,),
            limits=supervisor.Limits(most_restarts=1),
        )
    assert str(error.value) == (
        "main: its process 7 raised an exception (ConnectionError('nobody answers')), "
        "for the 2th time within 600 s; find the cause and run the same command again."
    )


def test_members_that_need_each_other_are_killed_with_the_first_that_ends():
    graces = []

    class Asked(Scripted):
        def stop(self, grace):
            graces.append(grace)

    members = [
        supervisor.Member("actor", lambda _: Asked("actor", [None, KILLED], [])),
        supervisor.Member("main", lambda _: Asked("main", [], [])),
    ]
    message = "^actor: its process 7 was killed by SIGKILL$"
    with pytest.raises(supervisor.MemberEndedError, match=message):
        supervise(*members, restarts=False)
    assert graces == [0.0, 0.0]


def test_pauses_before_restarts_grow_until_there_were_too_many():
    restarts = supervisor.Restarts(supervisor.Limits(most_restarts=4))
    pauses = [restarts.next_pause("killed") for _ in range(4)]
    assert pauses == [0.0, 1.0, 2.0, 4.0]
    with pytest.raises(RuntimeError, match=r"^killed, for the 5th time within 600 s"):
        restarts.next_pause("killed")


def test_an_exception_ends_the_run():
    events = []
    with pytest.raises(child_errors.ChildRaisedError, match="no such game"):
        supervise(
            member("actor", [[raised(ValueError("no such game"))]], events),
            member("main", [[]], events),
        )
    assert ("stop", "main") in events


def test_members_recover_from_the_exceptions_that_are_named():
    said = []
    supervise(
        member("main", [[raised(ConnectionError("gone"))], [FINISHED]], []),
        recovers=(ConnectionError,),
        said=said,
    )
    assert "raised an exception (ConnectionError('gone'))" in said[0]


class RaisesAtItsStop(Scripted):
    """A process whose function turns out to have raised when it is stopped."""

    def __init__(self, error, *arguments):
        super().__init__(*arguments)
        self._error = error

    def stop(self, grace):
        super().stop(grace)
        raise raised(self._error).error


def test_what_a_member_would_be_started_again_for_is_no_error_at_the_end():
    events = []

    def run(error):
        supervise(
            supervisor.Member(
                "actor", lambda _: RaisesAtItsStop(error, "actor", [], events)
            ),
            member("main", [[FINISHED]], events),
            recovers=(ConnectionError,),
        )

    run(ConnectionError("gone"))
    assert events[-1] == ("stop", "actor")
    with pytest.raises(child_errors.ChildRaisedError, match="raised wrong"):
        run(ValueError("wrong"))


def test_the_result_of_the_main_member_is_returned():
    member = supervisor.Member("main", supervisor.runs(lambda is_stopped: [1], "main"))
    assert supervisor.supervise([member], "main") == [1]


def test_a_request_stops_all():
    events, calls = [], iter([False, True])
    supervise(member("main", [[]], events), is_stopped=lambda: next(calls))
    assert events == [("start", "main"), ("stop", "main")]


def test_a_process_that_is_really_killed_is_replaced():
    def work(is_stopped):
        while not is_stopped():
            time.sleep(0.01)

    processes, replaced = [], threading.Event()

    def start(starts):
        processes.append(FunctionProcess(work, "worker"))
        if starts == 0:
            os.kill(processes[0].pid, signal.SIGKILL)
        else:
            replaced.set()
        return processes[-1]

    supervise(supervisor.Member("main", start), is_stopped=replaced.is_set)
    assert len(processes) == 2
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)
