from . import members as members
from . import sweep_checkpoint as sweep_checkpoint
from . import sweep_result as sweep_result
from . import sweeping as sweeping
from . import vectorized_members as vectorized_members
