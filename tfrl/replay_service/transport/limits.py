"""Limits on the messages that a server accepts from its clients.

A message is read into memory, and its JSON is parsed, before it is known to be valid.
So these limits bound the memory that any client can make the server use, and the time
for which it can make other clients wait. Clients divide larger requests among several
messages.
"""

from __future__ import annotations

GREETING_BYTES = 64 << 10  # Bytes of a message before a valid greeting.
JSON_BYTES = 4 << 20  # Bytes of the JSON in a request.
JSON_VALUES = 1 << 17  # Values in the JSON of a request, parsed in 20 ms.
COLUMNS = 4000  # Columns of a writer's steps, and of an item.
RANK = 32  # Dimensions of an array.
STEP_RANK = RANK - 2  # Of a step's leaf; items add time, and messages add items.
