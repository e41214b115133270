from . import multiprocessing_core as multiprocessing_core
