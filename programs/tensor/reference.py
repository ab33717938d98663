#!/usr/bin/env python3
"""Checks the programs of this directory against numpy: each `;; run` line is run in the interpreter, compiled, and
compiled with the default schedule, and what comes out is compared with numpy, as is the result that the line states.
`--write` replaces the `;; run` lines by those of CASES. DAEDAL names the tool; without it, it is `daedal`.

Inputs are small multiples of 1/8, so that every sum of products is exact in Float32 in any order: results are compared
exactly, but for those of `exp`, whose last bits differ among libraries.
"""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

HERE = pathlib.Path(__file__).parent
LONGEST = 1500
WAYS = [["eval"], ["run"], ["run", "--schedule", "default"]]


def windows(x, kernel, stride, padding, dilation=1):
    """Of x[n, space…, …], padded, what each place of a kernel covers: axes n, places…, …, kernel…"""
    space = len(kernel)
    x = np.pad(x, [(0, 0)] + [(padding, padding)] * space + [(0, 0)] * (x.ndim - 1 - space))
    reach = [dilation * (k - 1) + 1 for k in kernel]
    covered = sliding_window_view(x, reach, tuple(range(1, 1 + space)))
    covered = covered[(slice(None), *[slice(None, None, stride)] * space)]
    return covered[(..., *[slice(None, None, dilation)] * space)]


def convolution(x, w, stride, padding, dilation=1):
    """Of any number of dimensions, by that of the arguments."""
    space = x.ndim - 2
    covered = windows(x, w.shape[:space], stride, padding, dilation)
    return np.tensordot(covered, np.moveaxis(w, space, 0), space + 1)


def grouped(x, w, stride, padding, groups):
    parts = zip(np.split(x, groups, axis=-1), np.split(w, groups, axis=-1))
    return np.concatenate([convolution(a, b, stride, padding) for a, b in parts], axis=-1)


def depthwise(x, w, stride, padding):
    return np.einsum("nhwcyx,yxc->nhwc", windows(x, w.shape[:2], stride, padding), w)


def transposed(x, w, stride, padding):
    """Each pixel adds its share of the kernel to the output, whose edges are cut off in the end."""
    (n, height, width, _), (kh, kw, _, filters) = x.shape, w.shape
    out = np.zeros((n, (height - 1) * stride + kh, (width - 1) * stride + kw, filters), np.float32)
    for y, z in np.ndindex(height, width):
        share = np.einsum("nc,yxco->nyxo", x[:, y, z], w)
        out[:, y * stride : y * stride + kh, z * stride : z * stride + kw] += share
    return out[:, padding : out.shape[1] - padding, padding : out.shape[2] - padding]


def capsule(x, w, stride, padding):
    return np.einsum("nhwikcyx,yxkjco->nhwijo", windows(x, w.shape[:2], stride, padding), w)


def norm(a):
    return np.sqrt(np.einsum("nij,nij->n", a, a))


def layer(x, w, bias, scale, offset, stride, padding):
    return np.maximum((convolution(x, w, stride, padding) + bias) * scale + offset, np.float32(0))


def attention(queries, keys):
    scores = np.einsum("bshd,bthd->bhst", queries, keys)
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


REFERENCES = {
    "c1d": convolution,
    "c2d": convolution,
    "c3d": convolution,
    "cap": capsule,
    "conv_layer": layer,
    "dep": depthwise,
    "dil": convolution,
    "gmm": np.matmul,
    "grp": grouped,
    "nrm": norm,
    "t2d": transposed,
    "tbs": attention,
}

# Programs whose last bits are their own.
ROUNDED = {"tbs"}

# Of each program two lists of arguments: the shape of a tensor, or a number.
CASES = {
    "c1d": [[(2, 7, 3), (4, 3, 5), 1, 1], [(1, 8, 4), (3, 4, 2), 2, 2]],
    "c2d": [[(1, 5, 4, 2), (2, 3, 2, 3), 1, 1], [(2, 3, 6, 1), (4, 3, 1, 2), 2, 2]],
    "c3d": [[(1, 3, 4, 2, 2), (2, 3, 1, 2, 3), 1, 0], [(2, 3, 1, 4, 1), (1, 2, 3, 1, 2), 2, 2]],
    "cap": [[(1, 2, 3, 2, 3, 1), (2, 1, 3, 4, 1, 2), 1, 0], [(2, 3, 1, 1, 2, 3), (2, 3, 2, 2, 3, 1), 2, 1]],
    "conv_layer": [
        [(1, 5, 4, 2), (2, 3, 2, 3), (3,), (3,), (3,), 1, 1],
        [(2, 3, 6, 1), (4, 3, 1, 2), (2,), (2,), (2,), 2, 2],
    ],
    "dep": [[(1, 5, 4, 3), (2, 3, 3), 1, 1], [(2, 3, 6, 2), (4, 1, 2), 2, 2]],
    "dil": [[(1, 6, 5, 2), (3, 2, 2, 3), 1, 1, 2], [(2, 4, 5, 1), (2, 3, 1, 2), 2, 2, 3]],
    "gmm": [[(2, 3, 5), (2, 5, 4)], [(3, 1, 4), (3, 4, 2)]],
    "grp": [[(1, 5, 4, 4), (3, 2, 2, 6), 1, 0, 2], [(2, 3, 4, 3), (2, 3, 1, 6), 2, 1, 3]],
    "nrm": [[(3, 4, 5)], [(2, 1, 7)]],
    "t2d": [[(2, 3, 2, 2), (2, 3, 2, 3), 1, 0], [(1, 3, 4, 2), (4, 2, 2, 3), 2, 2]],
    "tbs": [[(1, 3, 2, 4), (1, 5, 2, 4)], [(2, 1, 3, 2), (2, 4, 3, 2)]],
}


def values(shape, seed):
    return (np.random.RandomState(seed).randint(-8, 9, shape) / 8).astype(np.float32)


def arguments(case, seed):
    return [values(a, 100 * seed + k) if isinstance(a, tuple) else a for k, a in enumerate(case)]


def word(value):
    return json.dumps(value.tolist() if isinstance(value, np.ndarray) else value, separators=(",", ":"))


def ask(way, name, words):
    """The answer of the tool, or its message."""
    command, *options = way
    tool = os.environ.get("DAEDAL", "daedal")
    done = subprocess.run(
        [tool, command, HERE / f"{name}.ks", name, *words, *options], capture_output=True, text=True, check=False
    )
    return done.stderr if done.returncode else json.loads(done.stdout)


def agrees(name, args, result):
    want = REFERENCES[name](*args)
    assert want.dtype == np.float32
    got = np.array(result)
    return got.shape == want.shape and np.allclose(got, want, rtol=1e-6 if name in ROUNDED else 0, atol=0)


def check(name):
    """What is wrong with the `;; run` lines of a program."""
    text = (HERE / f"{name}.ks").read_text()
    lines = [line for line in text.splitlines() if line.startswith(";; run ")]
    if len(lines) != len(CASES[name]):
        yield f"{name}: {len(lines)} lines instead of {len(CASES[name])}"
    for k, line in enumerate(lines, 1):
        call, stated = line.split(" => ")
        words, stated = call.split()[3:], json.loads(stated)
        parsed = [json.loads(w) for w in words]
        args = [np.array(a, np.float32) if isinstance(a, list) else a for a in parsed]
        if not agrees(name, args, stated):
            yield f"{name}, line {k}: the stated result is not that of numpy"
        for way in WAYS:
            if (got := ask(way, name, words)) != stated:
                yield f"{name}, line {k}, {' '.join(way)}: {got}"


def write(name):
    """Puts the `;; run` lines of the cases below the first line of a program."""
    lines = []
    for seed, case in enumerate(CASES[name], 1):
        args = arguments(case, seed)
        words = [word(a) for a in args]
        result = ask(["eval"], name, words)
        assert agrees(name, args, result), f"{name}: {result}"
        lines.append(f";; run {name} {' '.join(words)} => {word(result)}")
        assert len(lines[-1]) <= LONGEST, f"{name}: a line of {len(lines[-1])} characters"
    path = HERE / f"{name}.ks"
    head, *rest = [line for line in path.read_text().splitlines() if not line.startswith(";; run ")]
    path.write_text("\n".join([head, *lines, *rest]) + "\n")


def main():
    names = sorted(path.stem for path in HERE.glob("*.ks"))
    assert names == sorted(REFERENCES), names
    if "--write" in sys.argv[1:]:
        for name in names:
            write(name)
    wrong = [message for name in names for message in check(name)]
    print("\n".join(wrong) or f"{len(names)} programs agree")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
