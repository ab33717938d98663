"""The operators beside this file in numpy, whose products are OpenBLAS's.

`python3 peers.py` prints the version of numpy; `python3 peers.py THREADS NAME OUT IN…` computes one operator of arrays in
files, writes the result to the file OUT, and prints the seconds of the fastest call.
"""

import os
import sys

if len(sys.argv) > 1:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = sys.argv[1]
    # It may name the kernels of another processor.
    os.environ.pop("OPENBLAS_CORETYPE", None)

import time

try:
    import numpy as np
except ImportError:
    sys.exit(0)

SECONDS = 0.3


def attention(q, k, v):
    s = np.float32(0.125) * (q @ k.T)
    p = np.exp(s - s.max(1, keepdims=True))
    return (p / p.sum(1, keepdims=True)) @ v


def convolution(x, k):
    kh, kw, c, o = k.shape
    windows = np.lib.stride_tricks.sliding_window_view(x, (kh, kw), (0, 1))
    h, w = windows.shape[:2]
    columns = windows.transpose(0, 1, 3, 4, 2).reshape(h * w, kh * kw * c)
    return (columns @ k.reshape(kh * kw * c, o)).reshape(h, w, o)


OPERATORS = {
    "product": np.matmul,
    "products": np.matmul,
    "rows": np.matmul,
    "columns": lambda a, x: a.T @ x,
    "attention": attention,
    "convolution": convolution,
}


def main(name, out, files):
    arguments = [np.load(f) for f in files]
    call = OPERATORS[name.rstrip("0123456789")]
    np.save(out, call(*arguments))
    best, begin = float("inf"), time.perf_counter()
    while time.perf_counter() - begin < SECONDS:
        start = time.perf_counter()
        call(*arguments)
        best = min(best, time.perf_counter() - start)
    print(best)


if len(sys.argv) > 1:
    main(sys.argv[2], sys.argv[3], sys.argv[4:])
else:
    print(np.__version__)
