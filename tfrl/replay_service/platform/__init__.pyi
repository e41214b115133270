from . import checkpointers_lib as checkpointers_lib
