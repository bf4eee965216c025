"""Runs an ONNX model with onnxruntime and compares its weights with a safetensors file.

usage: read_model.py MODEL.onnx MODEL.safetensors INPUT LOGITS
INPUT holds float32 images; LOGITS is written as float32.
"""

import sys

import numpy
import onnxruntime
import safetensors
import safetensors.numpy

model, tensors, source, target = sys.argv[1:]
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
(declared,) = session.get_inputs()
assert declared.name == "input" and declared.shape[0] == "batch", declared
assert [output.name for output in session.get_outputs()] == ["logits"]
images = numpy.fromfile(source, dtype="<f4").reshape([-1] + declared.shape[1:])
(logits,) = session.run(["logits"], {"input": images})
for size in (1, 3):  # the batch is free
    (some,) = session.run(["logits"], {"input": images[:size]})
    assert numpy.allclose(some, logits[:size], atol=1e-5), size
logits.astype("<f4").tofile(target)

with safetensors.safe_open(tensors, framework="numpy") as file:
    metadata, properties = file.metadata(), session.get_modelmeta().custom_metadata_map
    for checked in (metadata, properties):
        assert len(checked.pop("xxh3_64")) == 16, checked
    assert metadata == properties, (metadata, properties)
    for name in file.keys():
        assert file.get_tensor(name).dtype == numpy.float32, name
    print("elements", sum(file.get_tensor(name).size for name in file.keys()))
