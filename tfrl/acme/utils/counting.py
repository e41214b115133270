"""`Counter`, which counts for several components of one program."""

from tfrl.utils.counting import Counter as Counter
from tfrl.utils.counting import Number as Number
