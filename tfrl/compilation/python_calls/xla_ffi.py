"""The part of XLA's foreign function interface that a handler in Python needs.

It is a stable C interface. `xla/ffi/api/c_api.h` in TensorFlow's headers declares the
structures used here. `register` makes a Python function the target of custom calls in
compiled programs.
"""

from __future__ import annotations

import ctypes
import functools
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfrl.compilation import internals
from tfrl.compilation.python_calls import graph_calls

# Another major version may lay out the structures differently.
_MAJOR_VERSION = 0
# The minor version whose handlers also record command buffers of a GPU.
_FIRST_WITH_RECORD = 4


class _Span(ctypes.Structure):
    _fields_ = (("data", ctypes.c_char_p), ("size", ctypes.c_size_t))

    @classmethod
    def of(cls, text: bytes) -> _Span:
        return cls(text, len(text))


class _Version(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
    )


class _Api(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("version", _Version),
        ("internal", ctypes.c_void_p),
        ("error_create", ctypes.c_void_p),
        ("error_get_message", ctypes.c_void_p),
        ("error_destroy", ctypes.c_void_p),
        ("handler_register", ctypes.c_void_p),
        ("stream_get", ctypes.c_void_p),
    )


class _ErrorCreateArgs(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("message", ctypes.c_char_p),
        ("code", ctypes.c_int),
    )


def _register_args(minor: int) -> type[ctypes.Structure]:
    """Returns the arguments of a registration, whose handlers differ by version."""
    stages: tuple[str, ...] = ("instantiate", "prepare", "initialize", "execute")
    if minor >= _FIRST_WITH_RECORD:
        stages += ("record",)
    return type(
        "_RegisterArgs",
        (ctypes.Structure,),
        {
            "_fields_": (
                ("struct_size", ctypes.c_size_t),
                ("extension", ctypes.c_void_p),
                ("name", _Span),
                ("platform", _Span),
                *((stage, ctypes.c_void_p) for stage in stages),
                ("traits", ctypes.c_uint32),
            )
        },
    )


class _StreamGetArgs(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    )


class _Values(ctypes.Structure):
    """XLA_FFI_Args and XLA_FFI_Rets."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
    )


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("names", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
    )


class _Scalar(ctypes.Structure):
    _fields_ = (("dtype", ctypes.c_int), ("value", ctypes.c_void_p))


class _CallFrame(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("api", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("inputs", _Values),
        ("outputs", _Values),
        ("attributes", _Attributes),
    )


class _Buffer(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
    )


class _Metadata(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("version", _Version))


class _MetadataExtension(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.POINTER(_Metadata)),
    )


_METADATA_EXTENSION = 1
_INTERNAL_ERROR = 13
_Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


_WORD = ctypes.sizeof(ctypes.c_size_t)
_FrameWords = ctypes.c_size_t * (ctypes.sizeof(_CallFrame) // _WORD)
_EXTENSION = _CallFrame.extension.offset // _WORD
_CONTEXT = _CallFrame.context.offset // _WORD
_INPUT_COUNT, _INPUTS, _OUTPUT_COUNT, _OUTPUTS = (
    (values.offset + field.offset) // _WORD
    for values in (_CallFrame.inputs, _CallFrame.outputs)
    for field in (_Values.count, _Values.values)
)
_ATTRIBUTES = (_CallFrame.attributes.offset + _Attributes.values.offset) // _WORD
_DATA = _Buffer.data.offset
_VALUE = _Scalar.value.offset
_MOST_KEPT = 1000


class _Kept(dict[int, Any]):
    """Views of memory by their addresses, made at first use.

    XLA uses the same few addresses again and again, and making a view takes several
    times as long as reading it. A view is only valid while XLA has memory there.
    """

    def __init__(self, view: Any) -> None:
        super().__init__()
        self._view = view

    def __missing__(self, address: int) -> Any:
        if len(self) >= _MOST_KEPT:
            self.clear()
        view = self[address] = self._view.from_address(address)
        return view


_frames, _words = _Kept(_FrameWords), _Kept(ctypes.c_size_t)
_pointers: dict[tuple[int, ...], list[ctypes.c_size_t]] = {}


def _addresses(frame: Sequence[int]) -> tuple[int, ...]:
    """Returns the addresses of the inputs' data, and then of the outputs'.

    Args:
      frame: The words of the call frame.
    """
    arrays = frame[_INPUT_COUNT], frame[_INPUTS], frame[_OUTPUT_COUNT], frame[_OUTPUTS]
    pointers = _pointers.get(arrays) or _view_pointers(*arrays)
    words = _words
    return tuple([words[pointer.value + _DATA].value for pointer in pointers])


def _number(frame: Sequence[int]) -> int:
    """Returns the value of the only attribute of a call, which is not negative.

    Args:
      frame: The words of the call frame.
    """
    words = _words
    scalar = words[frame[_ATTRIBUTES]].value
    return words[words[scalar + _VALUE].value].value


def _view_pointers(
    input_count: int, inputs: int, output_count: int, outputs: int
) -> list[ctypes.c_size_t]:
    """Returns views of the elements of two arrays of pointers to buffers."""
    if len(_pointers) >= _MOST_KEPT:
        _pointers.clear()
    places = [
        *(inputs + i * _WORD for i in range(input_count)),
        *(outputs + i * _WORD for i in range(output_count)),
    ]
    pointers = [ctypes.c_size_t.from_address(place) for place in places]
    _pointers[input_count, inputs, output_count, outputs] = pointers
    return pointers


def _tell_version(extension: int, version: _Version) -> None:
    """Tells XLA for which version of the interface the handler was made."""
    asked = _MetadataExtension.from_address(extension)
    if asked.type == _METADATA_EXTENSION:
        asked.metadata.contents.version.major = version.major
        asked.metadata.contents.version.minor = version.minor


def register(
    target: str,
    answer: Callable[[int, tuple[int, ...], int], None],
    platform: str = "Host",
) -> Any:
    """Registers a Python function as the handler of custom calls of `target`.

    Args:
      target: The name by which the calls refer to the handler.
      answer: Takes the only attribute of the call, an int64 from 0 up, the addresses of
        the input buffers and then of the output buffers, and the call's context. An
        exception makes the program fail, which corrupts the variables it updates.
      platform: XLA's name of the devices for which the programs are compiled.

    Returns:
      An object that must be kept as long as there are such calls.

    Raises:
      NotImplementedError: If this build of TensorFlow does not have the interface.
    """
    api = _find_api()
    create_error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_ErrorCreateArgs))(
        api.error_create
    )

    def handle(frame_address: int) -> int | None:
        frame = _frames[frame_address]
        if frame[_EXTENSION]:
            _tell_version(frame[_EXTENSION], api.version)
            return None
        try:
            graph_calls.keep_thread_state()
            answer(_number(frame), _addresses(frame), frame[_CONTEXT])
        except BaseException as error:  # An exception must not reach XLA.
            text = f"{type(error).__name__}: {error}".encode()
            arguments = _ErrorCreateArgs(
                ctypes.sizeof(_ErrorCreateArgs), None, text, _INTERNAL_ERROR
            )
            return create_error(ctypes.byref(arguments))
        return None

    handler = _Handler(handle)
    kind = _register_args(api.version.minor)
    arguments = kind(
        struct_size=ctypes.sizeof(kind),
        name=_Span.of(target.encode()),
        platform=_Span.of(platform.encode()),
        execute=ctypes.cast(handler, ctypes.c_void_p),
    )
    register_handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(kind))(
        api.handler_register
    )
    if register_handler(ctypes.byref(arguments)) is not None:
        raise NotImplementedError(
            f"host_call: XLA of TensorFlow {tf.__version__} refused the handler of "
            "Python calls; do not compile loops over Python environments."
        )
    return handler


def stream_of(context: int) -> int:
    """Returns the stream of a call on a GPU, for the functions of the GPU's driver.

    Args:
      context: The call's context.

    Raises:
      RuntimeError: The device of the call has no streams.
    """
    arguments = _StreamGetArgs(ctypes.sizeof(_StreamGetArgs), None, context, None)
    if _stream_getter()(ctypes.byref(arguments)) is not None:
        raise RuntimeError(
            "host_call: the device of the compiled program has no stream"
        )
    return arguments.stream or 0


@functools.cache
def _stream_getter() -> Callable[..., int | None]:
    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_StreamGetArgs))
    return function(_find_api().stream_get)


def _find_api() -> _Api:
    library = next(
        pathlib.Path(tf.__file__).parent.glob("libtensorflow_framework*"), None
    )
    try:
        get_api = internals.look_up(ctypes.CDLL(str(library)), internals.XLA_FFI_API)
    except (OSError, AttributeError):
        raise NotImplementedError(
            f"host_call: TensorFlow {tf.__version__} as it is installed here does not "
            "let Python be called from a program compiled by XLA, expected XLA's "
            "foreign function interface in libtensorflow_framework; do not compile "
            "loops over Python environments."
        ) from None
    get_api.restype = ctypes.c_void_p
    api = _Api.from_address(get_api())
    if api.version.major != _MAJOR_VERSION:
        raise NotImplementedError(
            f"host_call: TensorFlow {tf.__version__} has version {api.version.major} "
            f"of XLA's foreign function interface, expected {_MAJOR_VERSION}; do not "
            "compile loops over Python environments."
        )
    return api
