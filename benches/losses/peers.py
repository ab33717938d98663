"""The losses beside this file in JAX: value and gradient, jitted, on one thread, in 64 bits.

`python3 peers.py` prints the version of JAX, or nothing where there is none. `python3 peers.py FOLDER LOSS PARAM…` reads the
arguments of a loss, LOSS_ARGUMENT.npy of a folder, differentiates it by the parameters that are named, and prints an object:
`seconds` of the fastest call, and `parts`, the numbers of the value and of each gradient. The first call, which compiles, is
not timed; others follow for as long as `daedal measure` repeats its own.
"""

import os
import sys

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
# The flags do not hold all threads back; one core does.
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import inspect
import json
import time

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax
    from jax.nn import logsumexp
    from jax.scipy.linalg import solve_triangular
    from jax.scipy.special import gammaln
except ImportError:
    sys.exit(0)

jax.config.update("jax_enable_x64", True)

SECONDS = 0.3


def contrastive(a, b, temperature):
    u = a / jnp.sqrt((a * a).sum(1, keepdims=True))
    v = b / jnp.sqrt((b * b).sum(1, keepdims=True))
    s = u @ v.T / temperature
    return (logsumexp(s, axis=1) - jnp.diagonal(s)).mean()


def cox(x, event, beta):
    eta = x @ beta
    risk = jnp.cumsum(jnp.exp(eta)[::-1])[::-1]
    return -(event * (eta - jnp.log(risk))).sum()


def garch(r, omega, alpha, beta):
    def step(h, x):
        h = omega + alpha * x * x + beta * h
        return h, h

    first = omega / (1 - (alpha + beta))
    _, later = lax.scan(step, first, r[:-1])
    h = jnp.concatenate([first[None], later])
    return 0.5 * (jnp.log(h) + r * r / h).sum()


def rendering(sigma, rgb, dt, target):
    alpha = 1 - jnp.exp(-jnp.maximum(0, sigma) * dt)
    passed = jnp.cumprod(jnp.concatenate([jnp.ones((len(alpha), 1)), 1 - alpha[:, :-1]], 1), 1)
    miss = jnp.einsum("is,isc->ic", passed * alpha, rgb) - target
    return (miss * miss).sum()


def markov(emission, transition, start):
    def step(alpha, row):
        m = alpha.max()
        return row + m + jnp.log(jnp.exp(alpha[:, None] + transition - m).sum(0)), None

    last, _ = lax.scan(step, start, emission)
    return -logsumexp(last)


def softplus(x):
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-abs(x)))


def skip_gram(u, w, center, beside, drawn):
    c = u[center]
    near = softplus(-(c * w[beside]).sum(1)).sum()
    return near + softplus((c[:, None] * w[drawn]).sum(-1)).sum()


def graph(x, source, target, w1, w2, y):
    n = len(x)
    a1 = jnp.zeros((n, len(w1))).at[target].add((x @ w1.T)[source])
    z2 = jnp.maximum(0, a1) @ w2.T
    a2 = jnp.zeros((n, len(w2))).at[target].add(z2[source])
    return (logsumexp(a2, axis=1) - a2[jnp.arange(n), y]).sum()


def lennard_jones(p):
    i, j = np.triu_indices(len(p), 1)
    r2 = ((p[i] - p[j]) ** 2).sum(1)
    s = 1 / r2**3
    return (4 * (s * s - s)).sum()


def alignment(image, target, q):
    h, w = image.shape
    y, x = jnp.mgrid[0:h, 0:w]
    fx = q[0] * x + q[1] * y + q[2]
    fy = q[3] * x + q[4] * y + q[5]
    x0 = jnp.clip(jnp.floor(fx).astype(int), 0, w - 2)
    y0 = jnp.clip(jnp.floor(fy).astype(int), 0, h - 2)
    ax = fx - x0
    ay = fy - y0
    above = (1 - ax) * image[y0, x0] + ax * image[y0, x0 + 1]
    below = (1 - ax) * image[y0 + 1, x0] + ax * image[y0 + 1, x0 + 1]
    miss = (1 - ay) * above + ay * below - target
    return (miss * miss).sum()


def wave(c, start, observed):
    def step(state, _):
        u, before = state
        inner = 2 * u[1:-1] - before[1:-1] + c[1:-1] * (u[:-2] - 2 * u[1:-1] + u[2:])
        after = jnp.concatenate([jnp.zeros(1), inner, jnp.zeros(1)])
        return (after, u), after[len(after) // 2]

    _, middle = lax.scan(step, (start, start), None, length=len(observed))
    return ((middle - observed) ** 2).sum()


def block(x, g, b, w1, w2, y):
    mean = x.mean(1, keepdims=True)
    var = ((x - mean) ** 2).mean(1, keepdims=True)
    z = g * (x - mean) / jnp.sqrt(var + 1e-5) + b
    o = x + jax.nn.gelu(z @ w1.T) @ w2.T
    return ((o - y) ** 2).sum() / len(x)


def attention(q, k, v, y):
    n = q.shape[1]
    s = jnp.einsum("hid,hjd->hij", q, k) / jnp.sqrt(q.shape[2])
    s = jnp.where(jnp.tril(jnp.ones((n, n), bool)), s, -1e9)
    o = jnp.einsum("hij,hjd->hid", jax.nn.softmax(s), v)
    return ((o - y) ** 2).sum()


def coupling(x1, x2, ws, bs, wt, bt):
    s = jnp.tanh(x1 @ ws.T + bs)
    y = x2 * jnp.exp(s) + x1 @ wt.T + bt
    return (0.5 * y * y - s).sum() / len(x1)


def negative_binomial(x, y, beta, lr):
    r = jnp.exp(lr)
    mu = jnp.exp(x @ beta)
    counted = gammaln(y + r) - gammaln(r) - gammaln(y + 1)
    return -(counted + r * jnp.log(r / (r + mu)) + y * jnp.log(mu / (r + mu))).sum()


def splines(x, y, c):
    u = x * (len(c) - 3)
    b = jnp.floor(u).astype(int)
    t = u - b
    t2 = t * t
    t3 = t2 * t
    s = c[b] * (3 * t2 - t3 + 1 - 3 * t)
    s += c[b + 1] * (3 * t3 - 6 * t2 + 4)
    s += c[b + 2] * (3 * t2 - 3 * t3 + 3 * t + 1)
    s += c[b + 3] * t3
    return ((s / 6 - y) ** 2).mean()


def focal(z, y):
    p = 1 / (1 + jnp.exp(-z))
    found = y * (1 - p) ** 2 * jnp.log(p + 1e-7)
    left = (1 - y) * p**2 * jnp.log(1 - p + 1e-7)
    dice = 1 - (1 + 2 * (p * y).sum()) / (1 + (p + y).sum())
    return -(found + left).sum() / z.size + dice


def convolution(x, k, g, b, wo, y):
    z = lax.conv_general_dilated(x[:, None], k[:, None], (1, 1), "VALID")
    mean = z.mean((0, 2, 3), keepdims=True)
    var = ((z - mean) ** 2).mean((0, 2, 3), keepdims=True)
    scale, offset = g[None, :, None, None], b[None, :, None, None]
    r = jnp.maximum(0, offset + scale * (z - mean) / jnp.sqrt(var + 1e-5))
    return ((r.mean((2, 3)) @ wo - y) ** 2).sum()


def pairs(x, y, w):
    s = x @ w
    return jnp.where(y[:, None] > y[None], jnp.log(1 + jnp.exp(s[None] - s[:, None])), 0).sum()


def sinkhorn(x, y):
    n, m = len(x), len(y)
    cost = ((x[:, None] - y[None]) ** 2).sum(-1)
    kernel = jnp.exp(-cost)

    def rows(v):
        return (1 / n) / (kernel @ v)

    def step(v, _):
        return (1 / m) / (kernel.T @ rows(v)), None

    v, _ = lax.scan(step, jnp.ones(m), None, length=20)
    return (rows(v)[:, None] * kernel * v[None] * cost).sum()


def recurrent(x, w, u, b, o, y):
    def step(s, xt):
        return jnp.tanh(b + xt @ w.T + s @ u.T), None

    last, _ = lax.scan(step, jnp.zeros((x.shape[1], len(w))), x)
    return ((last @ o - y) ** 2).sum()


def dirichlet(y, la):
    a = jnp.exp(la)
    total = a.sum()
    rows = gammaln(total) - gammaln(total + y.sum(1))
    return -(rows + (gammaln(y + a) - gammaln(a)).sum(1)).sum()


def gaussian_process(x, y, ll, ls):
    d = (x[:, None] - x[None]) / jnp.exp(ll)
    k = jnp.exp(-0.5 * d * d) + jnp.eye(len(x)) * jnp.exp(2 * ls)
    l = jnp.linalg.cholesky(k)
    z = solve_triangular(l, y, lower=True)
    return 0.5 * (z * z).sum() + jnp.log(jnp.diagonal(l)).sum()


def poisson_factors(u, v, y):
    mean = jnp.exp(u) @ jnp.exp(v).T
    return (mean - y * jnp.log(mean)).sum()


def autoencoder(x, eps, w1, b1, wm, bm, ws, bs, w2, b2, w3, b3):
    a = jnp.tanh(x @ w1.T + b1)
    mu = a @ wm.T + bm
    ls = a @ ws.T + bs
    code = mu + jnp.exp(ls) * eps
    o = jnp.tanh(code @ w2.T + b2) @ w3.T + b3
    entropy = (softplus(o) - x * o).sum()
    return (entropy + (0.5 * (mu * mu + jnp.exp(2 * ls) - 1 - 2 * ls)).sum()) / len(x)


def kalman(y, lq, lr, phi):
    q, r = jnp.exp(lq), jnp.exp(lr)

    def step(state, yt):
        m, p, lost = state
        mean = phi * m
        var = phi * phi * p + q
        miss = yt - mean
        total = var + r
        gain = var / total
        lost += 0.5 * (jnp.log(total) + miss * miss / total)
        return (mean + gain * miss, (1 - gain) * var, lost), None

    (_, _, lost), _ = lax.scan(step, (0.0, 1.0, 0.0), y)
    return lost


def triplets(x, anchor, like, unlike):
    near = ((x[anchor] - x[like]) ** 2).sum(1)
    far = ((x[anchor] - x[unlike]) ** 2).sum(1)
    return jnp.maximum(0, 1 + near - far).mean()


def heat(c, start, observed):
    def step(u, _):
        inner = u[1:-1, 1:-1]
        beside = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return u.at[1:-1, 1:-1].set(inner + c[1:-1, 1:-1] * (beside - 4 * inner)), None

    last, _ = lax.scan(step, start, None, length=50)
    return ((last - observed) ** 2).sum()


def total_variation(x, y, k):
    blurred = lax.conv_general_dilated(x[None, None], k[None, None], (1, 1), "VALID")[0, 0]
    dx = x[:-1, 1:] - x[:-1, :-1]
    dy = x[1:, :-1] - x[:-1, :-1]
    return ((blurred - y) ** 2).sum() + 0.1 * jnp.sqrt(dx * dx + dy * dy + 1e-6).sum()


def chain_field(score, transition, y):
    def step(alpha, row):
        return row + logsumexp(alpha[:, None] + transition, axis=0), None

    last, _ = lax.scan(step, score[0], score[1:])
    right = score[jnp.arange(len(y)), y].sum() + transition[y[:-1], y[1:]].sum()
    return logsumexp(last) - right


def mixture_network(x, y, w, b, wp, wm, ws):
    a = jnp.tanh(b + x[:, None] * w)
    p = a @ wp.T
    ls = a @ ws.T
    d = (y[:, None] - a @ wm.T) / jnp.exp(ls)
    return -(logsumexp(p - ls - 0.5 * d * d, axis=1) - logsumexp(p, axis=1)).mean()


def hawkes(dt, lmu, la, lb, end):
    mu, a, b = jnp.exp(lmu), jnp.exp(la), jnp.exp(lb)

    def step(s, d):
        s = jnp.exp(-b * d) * (1 + s)
        return s, s

    _, later = lax.scan(step, 0.0, dt[1:])
    excited = jnp.concatenate([jnp.zeros(1), later])
    expected = mu * end + (a / b * (1 - jnp.exp(-b * (end - jnp.cumsum(dt))))).sum()
    return expected - jnp.log(mu + a * excited).sum()


def springs(x, source, target, length):
    r = jnp.sqrt(((x[source] - x[target]) ** 2).sum(1))
    return (0.5 * (r - length) ** 2).sum()


def factorization_machine(feature, y, v, w):
    e = v[feature]
    s = e.sum(1)
    o = w[feature].sum(1) + 0.5 * (s * s - (e * e).sum(1)).sum(1)
    return (softplus(o) - y * o).mean()


def sigmoid(x):
    return 1 / (1 + jnp.exp(-x))


def ordinal(x, y, beta, c):
    k = len(c)
    eta = x @ beta
    above = jnp.where(y < k, sigmoid(c[jnp.minimum(y, k - 1)] - eta), 1.0)
    below = jnp.where(y > 0, sigmoid(c[jnp.maximum(y - 1, 0)] - eta), 0.0)
    return -jnp.log(1e-9 + above - below).sum()


def neural_ode(x, y, w1, b1, w2):
    def step(s, _):
        return s + 0.05 * jnp.tanh(s @ w1.T + b1) @ w2.T, None

    last, _ = lax.scan(step, x, None, length=20)
    return ((last - y) ** 2).sum()


def student(x, y, beta, ls, ln):
    nu = jnp.exp(ln)
    z = (y - x @ beta) / jnp.exp(ls)
    scaled = 0.5 * jnp.log(jnp.pi * nu) + ls + 0.5 * (nu + 1) * jnp.log(1 + z * z / nu)
    return -(gammaln(0.5 * (nu + 1)) - gammaln(0.5 * nu) - scaled).sum()


def softmax_regression(x, y, w, b):
    z = x @ w.T + b
    entropy = logsumexp(z, axis=1) - z[jnp.arange(len(y)), y]
    return entropy.mean() + 0.01 * (w * w).sum()


def decorrelation(a, b):
    def normalized(z):
        return (z - z.mean(0)) / z.std(0)

    r = normalized(a).T @ normalized(b) / len(a)
    return jnp.where(jnp.eye(len(r)) == 1, (1 - r) ** 2, 0.005 * r * r).sum()


def strided(x, k1, k2, d, y):
    def layer(x, k):
        return jnp.maximum(0, lax.conv_general_dilated(x, k, (2, 2), "VALID"))

    return ((layer(layer(x, k1), k2).mean((2, 3)) @ d.T - y) ** 2).sum()


def planar_flow(z0, u, w, b):
    def layer(s, p):
        (z, ld), (uk, wk, bk) = s, p
        a = jnp.tanh(z @ wk + bk)
        return (z + a[:, None] * uk, ld + jnp.log(jnp.abs(1 + (1 - a * a) * (wk @ uk)))), None

    (z, ld), _ = lax.scan(layer, (z0, jnp.zeros(len(z0))), (u, w, b))
    return -(ld - 0.5 * ((z - 1) ** 2).sum(1)).mean()


def sequences(x, w, u, b, v, y):
    def step(s, xt):
        h, c = s
        g = jnp.einsum("ajq,iq->aij", w, xt) + jnp.einsum("ajq,iq->aij", u, h) + b[:, None]
        c = sigmoid(g[0]) * c + sigmoid(g[1]) * jnp.tanh(g[2])
        return (sigmoid(g[3]) * jnp.tanh(c), c), None

    zero = jnp.zeros((len(x), len(v)))
    (h, _), _ = lax.scan(step, (zero, zero), x.transpose(1, 0, 2))
    z = h @ v
    return (jnp.maximum(z, 0) + jnp.log(1 + jnp.exp(-jnp.abs(z))) - z * y).sum()


def spectrogram(s, f, target):
    frames, bins = target.shape
    y = jnp.convolve(s, f[::-1], mode="valid")
    w = y[32 * jnp.arange(frames)[:, None] + jnp.arange(64)]
    phase = 2 * jnp.pi * jnp.outer(jnp.arange(64), jnp.arange(bins)) / 64
    re, im = w @ jnp.cos(phase), w @ jnp.sin(phase)
    return ((jnp.log(1e-3 + re * re + im * im) - target) ** 2).sum()


def covariance(x, mu, l):
    triangle = jnp.tril(l, -1) + jnp.diag(jnp.exp(jnp.diagonal(l)))
    z = solve_triangular(triangle, (x - mu).T, lower=True)
    return len(x) * jnp.diagonal(l).sum() + 0.5 * (z * z).sum()


def arm(angle, axes, length, offset, y):
    i, j = jnp.meshgrid(jnp.arange(3), jnp.arange(3), indexing="ij")

    def turn(axis, t):
        c, s = jnp.cos(t)[:, None, None], jnp.sin(t)[:, None, None]
        plane = jnp.where(i == j, c, jnp.where((i + 1) % 3 == j, -s, s))
        return jnp.where((i == axis) | (j == axis), jnp.where(i == j, 1.0, 0.0), plane)

    def joint(s, p):
        (r, at), (t, axis, far, off) = s, p
        r = r @ turn(axis, t + off)
        return (r, at + far * r[:, :, 2]), None

    n = len(angle)
    start = (jnp.broadcast_to(jnp.eye(3), (n, 3, 3)), jnp.zeros((n, 3)))
    (_, at), _ = lax.scan(joint, start, (angle.T, axes, length, offset))
    return ((at - y) ** 2).sum()


def torsions(x):
    d = x[1:] - x[:-1]
    r = jnp.sqrt((d * d).sum(1)) - 1.5
    a, b = -d[:-1], d[1:]
    t = jnp.arccos((a * b).sum(1) / jnp.sqrt((a * a).sum(1) * (b * b).sum(1))) - 1.9
    p, q, s = d[:-2], d[1:-1], d[2:]
    u, v = jnp.cross(p, q), jnp.cross(q, s)
    phi = jnp.arctan2(jnp.sqrt((q * q).sum(1)) * (p * v).sum(1), (u * v).sum(1))
    return 100 * (r * r).sum() + 20 * (t * t).sum() + (1 + jnp.cos(3 * phi)).sum()


def spins(s, j, h):
    f = h + s @ (j * (1 - jnp.eye(len(h)))).T
    return jnp.log(1 + jnp.exp(-2 * s * f)).sum()


def spans(s):
    n = len(s)
    t = jnp.diag(jnp.diagonal(s))
    for l in range(1, n):
        i, k = jnp.arange(n - l), jnp.arange(l)
        both = t[i[:, None], i[:, None] + k] + t[i[:, None] + k + 1, (i + l)[:, None]]
        t = t.at[i, i + l].set(s[i, i + l] + jnp.log(jnp.exp(both).sum(1)))
    return t[0, n - 1]


def main(folder, name, by):
    loss = globals()[name]
    names = list(inspect.signature(loss).parameters)
    arguments = [jnp.asarray(np.load(os.path.join(folder, f"{name}_{n}.npy"))) for n in names]
    call = jax.jit(jax.value_and_grad(loss, argnums=tuple(names.index(n) for n in by)))
    value, gradients = jax.block_until_ready(call(*arguments))
    best = float("inf")
    begin = time.perf_counter()
    while time.perf_counter() - begin < SECONDS:
        start = time.perf_counter()
        jax.block_until_ready(call(*arguments))
        best = min(best, time.perf_counter() - start)
    parts = [np.ravel(np.asarray(part)).tolist() for part in (value, *gradients)]
    print(json.dumps({"seconds": best, "parts": parts}))


if len(sys.argv) > 1:
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
else:
    print(jax.__version__)
