"""The structures of XLA's interface, beside the headers in TensorFlow's wheel."""

import ctypes
import pathlib
import re

import pytest
import tensorflow as tf

from tfrl.compilation import internals
from tfrl.compilation.python_calls import xla_ffi

HEADERS = pathlib.Path(tf.sysconfig.get_include()) / "xla" / "ffi"
REGISTER_ARGS = xla_ffi._register_args(xla_ffi._find_api().version.minor)
NUMBERS = {
    "size_t": ctypes.c_size_t,
    "int": ctypes.c_int,
    "int64_t": ctypes.c_int64,
    "XLA_FFI_Handler_Traits": ctypes.c_uint32,
}


@pytest.fixture(scope="module")
def header():
    text = (HEADERS / "api" / "c_api.h").read_text()
    text = re.sub(r"_XLA_FFI_API_STRUCT_FIELD\((\w+)\);", r"void* \1;", text)
    return re.sub(r"//.*", "", text)


def body_of(header, name):
    (body,) = re.findall(rf"struct {name} {{([^}}]*)}}", header)
    return body


def structure_of(header, name):
    """Returns the structure that the header declares."""
    fields = []
    for line in filter(None, map(str.strip, body_of(header, name).split(";"))):
        kind, _, field = line.rpartition(" ")
        if kind.endswith("*"):
            fields.append((field, ctypes.c_void_p))
        elif kind in NUMBERS:
            fields.append((field, NUMBERS[kind]))
        elif re.search(rf"typedef enum {{[^}}]*}} {kind};", header):
            fields.append((field, ctypes.c_int))
        else:
            fields.append((field, structure_of(header, kind)))
    return type(name, (ctypes.Structure,), {"_fields_": fields})


def places(structure):
    """Returns the offsets and sizes of the fields, also inside of nested structures."""
    found = []
    for name, kind in structure._fields_:
        offset = getattr(structure, name).offset
        if issubclass(kind, ctypes.Structure):
            found += [(offset + inner, size) for inner, size in places(kind)]
        else:
            found.append((offset, ctypes.sizeof(kind)))
    return found


@pytest.mark.parametrize(
    ("ours", "name"),
    [
        (xla_ffi._Span, "XLA_FFI_ByteSpan"),
        (xla_ffi._Version, "XLA_FFI_Api_Version"),
        (xla_ffi._Api, "XLA_FFI_Api"),
        (xla_ffi._ErrorCreateArgs, "XLA_FFI_Error_Create_Args"),
        (REGISTER_ARGS, "XLA_FFI_Handler_Register_Args"),
        (xla_ffi._Values, "XLA_FFI_Args"),
        (xla_ffi._Values, "XLA_FFI_Rets"),
        (xla_ffi._Attributes, "XLA_FFI_Attrs"),
        (xla_ffi._Scalar, "XLA_FFI_Scalar"),
        (xla_ffi._CallFrame, "XLA_FFI_CallFrame"),
        (xla_ffi._Buffer, "XLA_FFI_Buffer"),
        (xla_ffi._Metadata, "XLA_FFI_Metadata"),
        (xla_ffi._MetadataExtension, "XLA_FFI_Metadata_Extension"),
    ],
)
def test_structures_begin_like_the_headers(header, ours, name):
    mine, theirs = places(ours), places(structure_of(header, name))
    assert mine == theirs[: len(mine)]


@pytest.mark.parametrize(
    ("ours", "name"),
    [
        (xla_ffi._ErrorCreateArgs, "XLA_FFI_Error_Create_Args"),
        (REGISTER_ARGS, "XLA_FFI_Handler_Register_Args"),
        (xla_ffi._StreamGetArgs, "XLA_FFI_Stream_Get_Args"),
    ],
)
def test_structures_that_xla_reads_are_whole(header, ours, name):
    assert places(ours) == places(structure_of(header, name))


def test_the_functions_of_the_interface_have_the_headers_places(header):
    names = re.findall(r"void\* XLA_FFI_(\w+);", body_of(header, "XLA_FFI_Api"))
    theirs = [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() for name in names]
    ours = [name for name, _ in xla_ffi._Api._fields_]
    first = ours.index(theirs[0])
    for used in ("error_create", "handler_register", "stream_get"):
        assert ours.index(used) - first == theirs.index(used)


def test_constants_are_the_headers(header):
    def value(name):
        (number,) = re.findall(rf"\b{name}(?: =)? (\d+)", header)
        return int(number)

    assert value("XLA_FFI_API_MAJOR") == xla_ffi._MAJOR_VERSION
    assert value("XLA_FFI_Extension_Metadata") == xla_ffi._METADATA_EXTENSION
    assert value("XLA_FFI_Error_Code_INTERNAL") == xla_ffi._INTERNAL_ERROR


def test_the_symbol_is_the_headers_function():
    declaration = "\nconst XLA_FFI_Api* GetXlaFfiApi();"
    assert any(declaration in path.read_text() for path in HEADERS.glob("*.h"))
    parts = [f"{len(name)}{name}" for name in ("xla", "ffi", "GetXlaFfiApi")]
    assert f"_ZN{''.join(parts)}Ev" == internals.XLA_FFI_API
