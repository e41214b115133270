"""Stored programs as texts that TensorFlow reads, by protobuf's own reader."""

import pytest
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    text_format,
)

from tfrl.compilation import program_entries

FIELDS = {
    "Key": ["number", "number", "text", "text", "flag"],
    "Entry": ["Key", "bytes", "bytes"],
}
NAMES = {
    "Key": [
        "signature_fingerprint",
        "cluster_fingerprint",
        "device_type",
        "prefix",
        "compiled_using_pjrt",
    ],
    "Entry": ["key", "hlo_module", "executable"],
}


def message_classes():
    """Returns classes with the fields of TensorFlow's xla_compilation_cache.proto."""
    types = descriptor_pb2.FieldDescriptorProto
    kinds = {
        "number": types.TYPE_UINT64,
        "text": types.TYPE_STRING,
        "flag": types.TYPE_BOOL,
        "bytes": types.TYPE_BYTES,
        "Key": types.TYPE_MESSAGE,
    }
    file = descriptor_pb2.FileDescriptorProto(name="entries.proto", syntax="proto3")
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for index, kind in enumerate(fields):
            message.field.add(
                name=NAMES[name][index],
                number=index + 1,
                type=kinds[kind],
                label=types.LABEL_OPTIONAL,
                type_name=".Key" if kind == "Key" else None,
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return [
        message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
        for name in FIELDS
    ]


def test_a_text_is_the_entry_without_its_source():
    make_key, make_entry = message_classes()
    key = make_key(
        signature_fingerprint=2**64 - 1,
        cluster_fingerprint=127,
        device_type="XLA_CPU_JIT",
        prefix='a "prefix"\n',
        compiled_using_pjrt=True,
    )
    program = bytes(range(256)) * 5 + b"\\000\\" + b'0"'
    entry = make_entry(key=key, hlo_module=b"source", executable=program)
    text = program_entries.to_text(entry.SerializeToString())
    # Bytes above 127 stand in the text as they are, and Python's reader wants letters.
    letters = text.decode("latin-1")
    read = text_format.Parse(letters.encode("ascii", "backslashreplace"), make_entry())
    assert read.key == key
    assert (read.hlo_module, read.executable) == (b"", program)


def test_preferences_are_not_among_the_instruction_sets_that_xla_looks_for():
    make_key, make_entry = message_classes()
    program = (
        b"+avx,+avx512bf16,+avx512f,+xsaves,+prefer-no-scatter,+prefer-no-gather,-zu"
    )
    entry = make_entry(key=make_key(prefix="a"), executable=program)
    text = program_entries.to_text(entry.SerializeToString())
    ours = (
        b'"+avx,-avx512bf16,-avx512f,+xsaves,-prefer-no-scatter,-prefer-no-gather,-zu"'
    )
    assert ours in text


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        (b"", "got fields .*expected a key and a program"),
        (b"\x0a\x02\x30\x01\x1a\x01x", "got field 6 in its key"),
        (b"\x0d\x00\x00\x00\x00", "field of type 5"),
        (b"\xff" * 11, "more than ten bytes"),
    ],
)
def test_an_entry_of_another_form_is_refused(entry, fault):
    with pytest.raises(ValueError, match=fault):
        program_entries.to_text(entry)
