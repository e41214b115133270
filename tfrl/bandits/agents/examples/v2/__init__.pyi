from . import trainer as trainer
