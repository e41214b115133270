from . import channel as channel
from . import child_errors as child_errors
from . import child_process as child_process
from . import default as default
from . import directory_lock as directory_lock
from . import interpreter as interpreter
from . import jobs as jobs
from . import state_savers as state_savers
from . import supervisor as supervisor
from . import system_multiprocessing as multiprocessing  # noqa: F401
from . import system_multiprocessing as system_multiprocessing
from .child_errors import ChildDiedError as ChildDiedError
from .child_errors import ChildError as ChildError
from .child_errors import ChildRaisedError as ChildRaisedError
from .child_errors import ChildTimeoutError as ChildTimeoutError
from .child_process import ChildProcess as ChildProcess
