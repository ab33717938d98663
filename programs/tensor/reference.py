#!/usr/bin/env python3
"""Holds the programs of this folder against numpy.

Inputs are small multiples of 1/8, so that every sum of products is exact in Float32 in any order:
results are compared exactly, but for those of `exp`, whose last bits differ among libraries.
`programs/compare.py` says with which options.
"""

import pathlib
import sys

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parent))
import compare  # noqa: E402


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


def depthwise_separable(x, depthwise, pointwise, bias, stride, padding):
    apart = np.einsum("nhwcyx,yxcm->nhwcm", windows(x, depthwise.shape[:2], stride, padding), depthwise)
    return np.maximum(np.tensordot(apart, pointwise, 2) + bias, np.float32(0))


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


def head(queries, keys, values):
    scores = queries.astype(np.float64) @ keys.T / np.sqrt(queries.shape[1])
    raised = np.exp(scores - scores.max(1, keepdims=True))
    return (raised / raised.sum(1, keepdims=True)) @ values


REFERENCES = {
    "attention": head,
    "c1d": convolution,
    "c2d": convolution,
    "c3d": convolution,
    "cap": capsule,
    "conv_layer": layer,
    "dep": depthwise,
    "depthwise_separable": depthwise_separable,
    "dil": convolution,
    "gmm": np.matmul,
    "grp": grouped,
    "nrm": norm,
    "t2d": transposed,
    "tbs": attention,
}

# Programs whose last bits are their own, and how far these may be: means of values of both signs lose some of them.
ROUNDED = {"attention": 1e-5, "tbs": 1e-6}

# Of each program two lists of arguments: the shape of a tensor, or a number.
ARGUMENTS = {
    "attention": [[(3, 4), (5, 4), (5, 2)], [(2, 3), (1, 3), (1, 4)]],
    "c1d": [[(2, 7, 3), (4, 3, 5), 1, 1], [(1, 8, 4), (3, 4, 2), 2, 2]],
    "c2d": [[(1, 5, 4, 2), (2, 3, 2, 3), 1, 1], [(2, 3, 6, 1), (4, 3, 1, 2), 2, 2]],
    "c3d": [[(1, 3, 4, 2, 2), (2, 3, 1, 2, 3), 1, 0], [(2, 3, 1, 4, 1), (1, 2, 3, 1, 2), 2, 2]],
    "cap": [[(1, 2, 3, 2, 3, 1), (2, 1, 3, 4, 1, 2), 1, 0], [(2, 3, 1, 1, 2, 3), (2, 3, 2, 2, 3, 1), 2, 1]],
    "conv_layer": [
        [(1, 5, 4, 2), (2, 3, 2, 3), (3,), (3,), (3,), 1, 1],
        [(2, 3, 6, 1), (4, 3, 1, 2), (2,), (2,), (2,), 2, 2],
    ],
    "dep": [[(1, 5, 4, 3), (2, 3, 3), 1, 1], [(2, 3, 6, 2), (4, 1, 2), 2, 2]],
    "depthwise_separable": [
        [(1, 5, 4, 2), (3, 3, 2, 2), (2, 2, 3), (3,), 1, 1],
        [(2, 3, 4, 3), (2, 3, 3, 1), (3, 1, 2), (2,), 2, 1],
        [(1, 1, 1, 1), (3, 3, 1, 3), (1, 3, 4), (4,), 1, 1],
    ],
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


def cases(name):
    """What `compare` asks of a program."""
    tolerance = ROUNDED.get(name, 0.0)
    return [(name, arguments(a, seed), REFERENCES[name], tolerance) for seed, a in enumerate(ARGUMENTS[name], 1)]


if __name__ == "__main__":
    compare.main(HERE, {name: cases(name) for name in ARGUMENTS})
