"""The server process: its sockets, its clients' sessions, and their requests.

`main` starts the process, `listeners` and `arena_listener` accept connections, a
`Session` answers one client's messages, and a `Service` holds the state that all
sessions share.

>>> from tfrl.replay_service import errors
>>> from tfrl.replay_service.engine.serving import requests
>>> requests.check_count(3, "num", 1)
3
>>> try:
...     requests.check_count(0, "num", 1)
... except errors.ProtocolError as error:
...     print(error)
num: got 0, expected an integer of at least 1.
"""
