"""The work of the actors, the learner and the evaluator of a run.

>>> import json
>>> import pathlib
>>> import tempfile
>>> from tfrl.distribute.roles import checkpoint_manifest
>>> folder = tempfile.TemporaryDirectory()
>>> path = pathlib.Path(folder.name, "manifest.json")
>>> _ = path.write_text(json.dumps({"iteration": 1000, "shards": []}))
>>> checkpoint_manifest.describe(path, [])
'Resuming from iteration 1,000.'
>>> folder.cleanup()
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
