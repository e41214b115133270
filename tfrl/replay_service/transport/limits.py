"""Limits on the messages that a server accepts from its clients.

A message is read into memory, and its JSON is parsed, before it is known to be valid.
So these limits bound the memory that any client can make the server use, and the time
for which it can make other clients wait. Clients divide what would exceed them among
several messages.
"""

from __future__ import annotations

GREETING_BYTES = 64 << 10  # Of a message that is not preceded by a valid greeting.
JSON_BYTES = 4 << 20  # Of the JSON in a request.
JSON_VALUES = 1 << 17  # In the JSON of a request; the server parses them in 20 ms.
COLUMNS = 4000  # Of the steps of a writer, and of an item.
RANK = 32  # Dimensions of an array.
STEP_RANK = RANK - 2  # Of a leaf of a step: items add time, and messages add items.
