from . import command_launcher as command_launcher
from . import local_launcher as local_launcher
from . import plan as plan
from . import ray_launcher as ray_launcher
