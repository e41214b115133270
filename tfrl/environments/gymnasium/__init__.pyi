from . import state_adapters as state_adapters
from . import vector_py_environment as vector_py_environment
