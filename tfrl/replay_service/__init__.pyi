from . import errors as errors
from . import wire as wire
from .errors import DeadlineExceededError as DeadlineExceededError
from .errors import ReplayUnavailable as ReplayUnavailable
from .errors import ReverbError as ReverbError
