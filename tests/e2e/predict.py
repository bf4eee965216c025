"""Classifies the images of an IDX file with an ONNX model, as its own description says they are to be given.

usage: predict.py MODEL.onnx MODEL.safetensors IMAGES.gz
Prints the metadata of both files as two JSON objects, a line each, then a class for each image, one a line.
"""

import gzip
import json
import sys

import numpy
import onnxruntime
import safetensors

model, tensors, images = sys.argv[1:]
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
about = session.get_modelmeta()
assert "float32, NCHW, with values from 0 to 255" in about.description, about.description
print(json.dumps(about.custom_metadata_map))
with safetensors.safe_open(tensors, framework="numpy") as file:
    print(json.dumps(file.metadata()))
shape = session.get_inputs()[0].shape[1:]
pixels = numpy.frombuffer(gzip.open(images).read(), dtype=numpy.uint8, offset=16).reshape([-1, *shape])
(logits,) = session.run(["logits"], {"input": pixels.astype(numpy.float32)})
print("\n".join(map(str, logits.argmax(axis=1))))
