"""The fits beside this file in numpy, with gradients written by hand, and in jitted JAX, on one thread.

`python3 peers.py FOLDER STEPS` reads the arrays NAME.npy of a folder and prints, for each library that is there and each
fit, a line: library, fit, seconds of the fastest of three calls, and the first parameters that it finds.
"""

import os
import sys

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import time

FOLDER, STEPS = sys.argv[1], int(sys.argv[2])


def timed(library, name, call):
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        out = call()
        best = min(best, time.perf_counter() - start)
    values = " ".join(repr(float(v)) for v in np.ravel(np.asarray(out))[:3])
    print(f"{library} {name} {best!r} {values}", flush=True)


try:
    import numpy as np
except ImportError:
    sys.exit(0)


def load(name):
    return np.load(os.path.join(FOLDER, name + ".npy"))


def logistic(x, y):
    w = np.zeros(x.shape[1])
    for _ in range(STEPS):
        w = w - 0.5 * (x.T @ (1 / (1 + np.exp(-(x @ w))) - y) / len(y))
    return w


def network(a, b, c, x, y):
    for _ in range(STEPS):
        z = np.tanh(x @ a + b)
        m = (z @ c - y) * (2 / len(y))
        gc = z.T @ m
        q = np.outer(m, c) * (1 - z * z)
        a, b, c = a - 0.05 * (x.T @ q), b - 0.05 * q.sum(0), c - 0.05 * gc
    return c


def mixture(a, m, q, l, x):
    n, (k, d) = len(x), m.shape
    i, rows = np.arange(d), np.tril_indices(d, -1)
    for _ in range(STEPS):
        t, e = np.zeros((k, d, d)), np.exp(q)
        t[:, rows[0], rows[1]] = l
        t[:, i, i] = e
        c = x[:, None] - m
        w = np.einsum("kij,nkj->nki", t, c, optimize=True)
        p = a + q.sum(1) - 0.5 * (w * w).sum(2)
        r = np.exp(p - p.max(1, keepdims=True))
        r /= r.sum(1, keepdims=True)
        s = np.exp(a - a.max())
        dw = r[:, :, None] * w / n
        gt = np.einsum("nki,nkj->kij", dw, c, optimize=True)
        gm = -np.einsum("kij,nki->kj", t, dw, optimize=True)
        gq = -r.mean(0)[:, None] + gt[:, i, i] * e
        a = a - 0.1 * (s / s.sum() - r.mean(0))
        m, q, l = m - 0.1 * gm, q - 0.1 * gq, l - 0.1 * gt[:, rows[0], rows[1]]
    return a


DATA = {
    "logistic": [load(n) for n in ("logistic_x", "logistic_y")],
    "network": [load("network_" + n) for n in "abcxy"],
    "mixture": [load("mixture_" + n) for n in "amqlx"],
}
for call in (logistic, network, mixture):
    timed("numpy", call.__name__, lambda: call(*DATA[call.__name__]))

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    sys.exit(0)

jax.config.update("jax_enable_x64", True)


def descend(loss, rate, data):
    """Steps against the gradient of a loss of parameters and data."""

    def step(_, p):
        return jax.tree.map(lambda u, g: u - rate * g, p, jax.grad(loss)(p, *data))

    return lambda p: jax.lax.fori_loop(0, STEPS, step, p)


def logistic_loss(w, x, y):
    z = x @ w
    return jnp.mean(jnp.log(1 + jnp.exp(z)) - y * z)


def network_loss(p, x, y):
    a, b, c = p
    return jnp.mean((jnp.tanh(x @ a + b) @ c - y) ** 2)


def mixture_loss(p, x):
    a, m, q, l = p
    k, d = m.shape
    rows = np.tril_indices(d, -1)
    c = x[:, None] - m
    w = jnp.exp(q) * c + jnp.einsum("kij,nkj->nki", jnp.zeros((k, d, d)).at[:, rows[0], rows[1]].set(l), c)
    t = a + q.sum(1) - 0.5 * (w * w).sum(2)
    return jax.nn.logsumexp(a) - jnp.mean(jax.nn.logsumexp(t, axis=1))


def with_jax(name, loss, rate, start, data, found):
    data = [jnp.asarray(v) for v in data]
    start = jax.tree.map(jnp.asarray, start)
    fit = jax.jit(descend(loss, rate, data))
    jax.block_until_ready(fit(start))
    timed("jax", name, lambda: found(jax.block_until_ready(fit(start))))


x, y = DATA["logistic"]
with_jax("logistic", logistic_loss, 0.5, np.zeros(x.shape[1]), (x, y), lambda p: p)
a, b, c, x, y = DATA["network"]
with_jax("network", network_loss, 0.05, (a, b, c), (x, y), lambda p: p[2])
a, m, q, l, x = DATA["mixture"]
with_jax("mixture", mixture_loss, 0.1, (a, m, q, l), (x,), lambda p: p[0])
