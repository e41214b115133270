"""Contexts without searches for garbage."""

import gc

import pytest

from tfrl import garbage

CONTEXTS = [garbage.uncollected, garbage.permanent]


@pytest.fixture(autouse=True)
def unfrozen():
    yield
    gc.enable()
    gc.unfreeze()


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("is_enabled", [True, False])
def test_no_garbage_is_collected_in_a_context(context, is_enabled):
    (gc.enable if is_enabled else gc.disable)()
    with context():
        with context():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled() == is_enabled


@pytest.mark.parametrize("context", CONTEXTS)
def test_garbage_is_collected_after_an_error(context):
    with pytest.raises(ImportError), context():
        raise ImportError
    assert gc.isenabled()


def test_only_what_is_permanent_is_not_searched_later():
    with garbage.uncollected():
        collected = [object()]
    assert any(each is collected for each in gc.get_objects())
    with garbage.permanent():
        kept = [object()]
    assert not any(each is kept for each in gc.get_objects())
