from . import permutations as permutations
from . import seeds as seeds
