from . import masked_cartpole as masked_cartpole
