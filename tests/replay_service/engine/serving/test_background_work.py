"""Work in the background is done in slices, in order, between other callbacks."""

import asyncio

from tfrl.replay_service.engine.serving import background_work


def work(done, name, slices):
    for i in range(slices):
        if i:
            yield
        done.append((name, i))


def run(test):
    asyncio.run(asyncio.wait_for(test(), 30))


def test_the_first_slice_is_done_immediately():
    async def check():
        done = []
        background = background_work.BackgroundWork()
        background.add(work(done, "a", 1))
        assert done == [("a", 0)]
        assert not len(background)
        background.add(work(done, "b", 3))
        assert done[1:] == [("b", 0)]
        assert len(background) == 1

    run(check)


def test_other_callbacks_run_between_slices_and_work_stays_in_order(monkeypatch):
    monkeypatch.setattr(background_work, "_TURN", 0.0)

    async def check():
        done = []
        background = background_work.BackgroundWork()
        background.add(work(done, "a", 3))
        background.add(work(done, "b", 2))
        turns = 0
        while len(background):
            turns += 1
            await asyncio.sleep(0)
        assert done == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)]
        # Ends are noticed in turns of their own.
        assert turns >= 4
        background.add(work(done, "c", 1))
        assert done[-1] == ("c", 0)

    run(check)


def test_without_a_loop_all_is_done():
    done = []
    background = background_work.BackgroundWork()
    background.add(work(done, "a", 3))
    assert len(done) == 3
    assert not len(background)


def test_work_that_fails_does_not_keep_other_work_from_being_done(capsys):
    def failing():
        yield
        raise AssertionError("no such slot")

    async def check():
        done = []
        background = background_work.BackgroundWork()
        background.add(failing())
        background.add(work(done, "a", 2))
        while len(background):
            await asyncio.sleep(0)
        assert len(done) == 2

    run(check)
    assert "no such slot" in capsys.readouterr().err
