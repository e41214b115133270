from . import advantages as advantages
from . import construction as construction
from . import training_data as training_data
