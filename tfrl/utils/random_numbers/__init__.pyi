from . import ou_process as ou_process
from . import permutations as permutations
from . import seeds as seeds
