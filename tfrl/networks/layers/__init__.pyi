from . import continuous as continuous
from . import cosine_embedding as cosine_embedding
from . import dense as dense
from . import encoders as encoders
from . import initializers as initializers
from . import multiplexers as multiplexers
from . import noisy as noisy
from . import preprocessing as preprocessing
