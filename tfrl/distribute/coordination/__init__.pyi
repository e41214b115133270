from . import coordinator as coordinator
from . import coordinator_client as coordinator_client
from . import remote_process as remote_process
from . import remote_work as remote_work
