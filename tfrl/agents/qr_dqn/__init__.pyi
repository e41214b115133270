from . import qr_dqn_agent as qr_dqn_agent
from .qr_dqn_agent import QrDqnAgent as QrDqnAgent
