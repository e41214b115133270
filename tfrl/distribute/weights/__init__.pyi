from . import host_relay as host_relay
from . import reverb_variable_container as reverb_variable_container
from . import shared_weights as shared_weights
from . import weight_puller as weight_puller
from . import weight_versions as weight_versions
