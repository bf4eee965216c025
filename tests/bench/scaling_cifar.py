#!/usr/bin/env python3
"""Converts CIFAR-10 from tars of JPEG files (NUMBER.jpg, and NUMBER.cls with the class as a digit) into the files that
jobs and `train_bench` read, under MNIST's names. Needs Pillow (python3 -m venv FOLDER; FOLDER/bin/pip install pillow).

  tests/bench/scaling_cifar.py FOLDER_WITH_TARS FOLDER
"""

import argparse
import gzip
import io
import pathlib
import struct
import sys
import tarfile

SIDE = 32
TARS = {"train": "train.tar", "t10k": "test.tar"}


def examples(path):
    """(name, RGB image, label), by name."""
    from PIL import Image  # where nothing is to be converted it is not needed
    images, labels = {}, {}
    with tarfile.open(path) as tar:
        for member in tar:
            name, _, kind = member.name.rpartition(".")
            if kind == "jpg":
                images[name] = Image.open(io.BytesIO(tar.extractfile(member).read())).convert("RGB")
            elif kind == "cls":
                labels[name] = int(tar.extractfile(member).read())
    if images.keys() != labels.keys():
        sys.exit(f"{path}: images and classes do not belong together")
    return [(name, images[name], labels[name]) for name in sorted(images)]


def planes(image):
    """Bytes [channels, height, width]."""
    return b"".join(channel.tobytes() for channel in image.split())


def write(path, dimensions, content):
    header = struct.pack(f">BBBB{len(dimensions)}I", 0, 0, 8, len(dimensions), *dimensions)
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(header + content)


def convert(tars, folder):
    """Does nothing where all files are there."""
    wanted = {prefix: (folder / f"{prefix}-images-idx3-ubyte.gz", folder / f"{prefix}-labels-idx1-ubyte.gz")
              for prefix in TARS}
    folder.mkdir(parents=True, exist_ok=True)
    for prefix, (images, labels) in wanted.items():
        if labels.exists():  # written last
            continue
        found = examples(tars / TARS[prefix])
        if any(image.size != (SIDE, SIDE) for _, image, _ in found):
            sys.exit(f"{tars / TARS[prefix]}: an image is not {SIDE} by {SIDE}")
        write(images, (len(found), 3, SIDE, SIDE), b"".join(planes(image) for _, image, _ in found))
        write(labels, (len(found),), bytes(label for _, _, label in found))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tars", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    convert(arguments.tars, arguments.folder)


if __name__ == "__main__":
    main()
