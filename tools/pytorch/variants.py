"""The ways in which PyTorch trains."""

import itertools

LAYOUTS = ("NCHW", "channels last")
UPDATES = ("fused", "unfused")
EXECUTIONS = ("eager", "compiled")
VARIANTS = [", ".join(variant) for variant in itertools.product(LAYOUTS, UPDATES, EXECUTIONS)]
EAGER_VARIANTS = [variant for variant in VARIANTS if variant.endswith("eager")]
