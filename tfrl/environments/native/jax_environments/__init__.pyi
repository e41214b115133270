from . import adapters as adapters
from . import forms as forms
from . import libraries as libraries
from . import loading as loading
from . import tracing as tracing
