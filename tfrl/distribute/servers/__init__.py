"""The replay servers of a run, and tables of messages.

>>> from tfrl.distribute.servers import replay_servers
>>> servers = replay_servers.FixedServers(("host-a:8000", "host-b:8000"))
>>> servers.first, len(servers.addresses())
('host-a:8000', 2)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
