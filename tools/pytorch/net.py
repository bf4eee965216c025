"""A net of Adamant's in PyTorch, from what `train_bench describe` prints."""

from torch import nn


def make_layer(layer, inputs):
    """The module of one layer; `inputs`: the shape of its input, without the batch."""
    kind = layer["kind"]
    window = {"kernel_size": layer["kernel"], "stride": layer["stride"], "padding": layer["padding"]}
    if kind == "conv2d":
        return nn.Conv2d(inputs[0], layer["output"][0], dilation=layer["dilation"], groups=layer["groups"], **window)
    if kind == "max pool":
        return nn.MaxPool2d(**window)
    if kind == "average pool":
        return nn.AvgPool2d(**window)
    if kind == "fully connected":
        features = 1
        for extent in inputs:
            features *= extent
        linear = nn.Linear(features, layer["output"][0])
        return linear if len(inputs) == 1 else nn.Sequential(nn.Flatten(), linear)
    if kind == "dropout":
        return nn.Dropout(layer["rate"])
    simple = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "flatten": nn.Flatten}
    if kind not in simple:
        raise ValueError(f"no counterpart in PyTorch is written for a layer of kind {kind}")
    return simple[kind]()


def make_net(description):
    """An nn.Sequential with PyTorch's own initial weights. Only chains of layers can be compared."""
    modules = []
    shape = description["input"]
    for index, layer in enumerate(description["layers"]):
        if layer["inputs"] != [index - 1]:
            raise ValueError("only nets whose layers form a chain can be compared")
        modules.append(make_layer(layer, shape))
        shape = layer["output"]
    return nn.Sequential(*modules)

