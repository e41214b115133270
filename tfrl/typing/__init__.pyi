from . import types as types
