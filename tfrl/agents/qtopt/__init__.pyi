from . import qtopt_agent as qtopt_agent
from .qtopt_agent import QtOptAgent as QtOptAgent
