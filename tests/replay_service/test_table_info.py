import pytest

from tfrl.replay_service import reverb_types


def test_descriptions_as_protocol_buffers_are_refused():
    with pytest.raises(NotImplementedError, match=r"got 3 bytes.* Client\.server_info"):
        reverb_types.TableInfo.from_serialized_proto(b"\x0a\x01t")
