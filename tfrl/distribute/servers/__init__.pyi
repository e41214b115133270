from . import message_tables as message_tables
from . import replay_servers as replay_servers
from . import supervised_server as supervised_server
