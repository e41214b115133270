"""The first bytes of a connection stand for the token, and do not show it."""

from tfrl.replay_service.transport import preamble


def test_each_token_has_bytes_of_its_own():
    tokens = (None, "", "\0", "a", "a\0", "b", "nö", "a" * 99)
    made = [preamble.of_client(token) for token in tokens]
    assert len(set(made)) == len(made)
    for first in made:
        assert first.startswith(preamble.MAGIC)
        assert len(first) == preamble.SIZE
    assert preamble.of_client("a") == preamble.MAGIC + preamble.digest("a")
    assert b"a" * 9 not in made[-1]
