#!/usr/bin/env python3
"""Tests the examples of reach.torch's public names, which doctest skips if PyTorch is missing. Examples that need no
GPU run here and must work."""
import doctest
import importlib
import os
import shutil
import tempfile
import warnings

import common
from common import case

common.need_torch()

import torch  # noqa: E402

import reach.torch  # noqa: E402

FINGERPRINT = os.path.join(common.ROOT, "docs", "measurements", "nvidia-h200-3232f831-2026-11-21",
                           "fingerprint-full.json")
NEEDS = "It needs PyTorch"  # other examples need a GPU too
warnings.simplefilter("ignore", reach.torch.StockOperatorWarning)


def run(name, item):
    text = item.__doc__.replace("  # doctest: +SKIP", "")
    scope = {**vars(importlib.import_module(item.__module__)), "torch": torch}
    test = doctest.DocTestParser().get_doctest(text, scope, name, None, 0)
    output = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=output.append)
    assert runner.failures == 0 and runner.tries > 0, "".join(output)


@case
def examples_that_need_no_gpu_do_what_they_say():
    here, done = os.getcwd(), []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(FINGERPRINT, os.path.join(folder, "fingerprint.json"))
        os.chdir(folder)
        try:
            for name in reach.torch.__all__:
                item = getattr(reach.torch, name)
                if NEEDS in " ".join((item.__doc__ or "").split()):
                    run(name, item)
                    done.append(name)
        finally:
            os.chdir(here)
            reach.torch.use(None)
    assert set(reach.torch.__all__) - set(done) <= {"HostTable", "MemPool", "StockOperatorWarning", "divide_sms"}, done


if __name__ == "__main__":
    common.main()
