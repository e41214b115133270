"""Exports of greedy policies: ONNX, LiteRT, SavedModel, and NumPy with its own code.

`formats.export` writes a policy in one of the formats, and checks it on 1,000
observations.

>>> from tfrl.policies.exporting import formats
>>> list(formats.FORMATS)
['onnx', 'litert', 'savedmodel', 'numpy']
"""
