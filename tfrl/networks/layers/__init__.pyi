from . import bodies as bodies
from . import continuous as continuous
from . import dense as dense
from . import dropout as dropout
from . import encoders as encoders
from . import initializers as initializers
from . import noisy as noisy
from . import preprocessing as preprocessing
