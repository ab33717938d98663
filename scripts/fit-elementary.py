#!/usr/bin/env python3
"""Coefficients of the polynomials in src/ir/elementary/: weighted minimax fits by Remez's exchange, with the first
coefficients rounded one after another, so that later ones make up for it. Needs mpmath. Prints all, with their errors.
"""
import mpmath as mp

mp.mp.prec = 240


def rounded(v, bits):
    v = mp.mpf(v)
    if v == 0:
        return v
    m, e = mp.frexp(v)
    return mp.ldexp(mp.nint(mp.ldexp(m, bits)), int(e) - bits)


def remez(f, powers, weight, a, b, grid):
    """The coefficients of the powers, and the greatest weighted error."""
    n, a, b = len(powers), mp.mpf(a), mp.mpf(b)
    points = [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * k / (grid - 1)) for k in range(grid)]
    value, weights = [f(x) for x in points], [weight(x) for x in points]
    basis = [[x**k for k in powers] for x in points]
    at, best = [round((grid - 1) * k / n) for k in range(n + 1)], None
    for _ in range(12):
        matrix, right = mp.matrix(n + 1, n + 1), mp.matrix(n + 1, 1)
        for i, j in enumerate(at):
            for k in range(n):
                matrix[i, k] = basis[j][k] * weights[j]
            matrix[i, n], right[i] = (-1) ** i, value[j] * weights[j]
        found = mp.lu_solve(matrix, right)
        c = [found[k] for k in range(n)]
        error = [(sum(p * q for p, q in zip(c, basis[j])) - value[j]) * weights[j] for j in range(grid)]
        most = max(abs(e) for e in error)
        if best is None or most < best[0]:
            best = (most, c)
        runs, run = [], [0]
        for j in range(1, grid):
            if (error[j] >= 0) == (error[run[0]] >= 0):
                run.append(j)
            else:
                runs.append(run)
                run = [j]
        peaks = [max(r, key=lambda j: abs(error[j])) for r in runs + [run]]
        while len(peaks) > n + 1:
            peaks.pop(0 if abs(error[peaks[0]]) < abs(error[peaks[-1]]) else -1)
        if len(peaks) < n + 1 or peaks == at or most < abs(found[n]) * mp.mpf("1.02"):
            break
        at = peaks
    return best[1], best[0]


def show(name, f, count, weight, a, b, bits, grid=400):
    first = min(count - 1, count if bits == 24 else 2)
    done = []
    for _ in range(first):
        left = lambda x: f(x) - sum(c * x**k for k, c in enumerate(done))
        done.append(rounded(remez(left, range(len(done), count), weight, a, b, grid)[0][0], bits))
    left = lambda x: f(x) - sum(c * x**k for k, c in enumerate(done))
    done += [rounded(c, bits) for c in remez(left, range(len(done), count), weight, a, b, grid)[0]]
    points = [a + (mp.mpf(b) - a) * k / 3001 for k in range(1, 3001)]
    error = max(abs((sum(c * x**k for k, c in enumerate(done)) - f(x)) * weight(x)) for x in points)
    print(f"{name}, {bits} bits: error 2^{mp.nstr(mp.log(error, 2), 4)}")
    print("   ", [float(c) for c in done])


def of_square(f):
    """f(s) / s - 1 over s², in s²; and the weight that makes the error relative to f."""
    near = lambda z: max(z, mp.mpf(2) ** -80)
    fit = lambda z: (f(mp.sqrt(near(z))) / mp.sqrt(near(z)) - 1) / near(z)
    return fit, lambda z: z * mp.sqrt(z) / f(mp.sqrt(z)) if z > 0 else mp.mpf(0)


def main():
    half = mp.log(2) / 2 * mp.mpf("1.0001")
    away = lambda x: x if abs(x) > mp.mpf(2) ** -60 else mp.mpf(2) ** -60
    exp = lambda x: (mp.exp(away(x)) - 1 - away(x)) / away(x) ** 2
    log = lambda z: (mp.log((1 + mp.sqrt(away(z))) / (1 - mp.sqrt(away(z)))) - 2 * mp.sqrt(away(z))) / mp.sqrt(away(z)) ** 3
    parts = lambda z: (log(away(z)) - mp.mpf(2) / 3) / away(z)
    slope = 1 - mp.euler
    gamma = lambda w: (mp.loggamma(2 + away(w)) / away(w) - slope) / away(w)
    for bits, sizes in ((53, (10, 7, 8, 8, 12, 11, 11, 19, 17)), (24, (5, 3, 3, 4, 5, 5, 6, 8, 8))):
        show("exp", exp, sizes[0], lambda x: x * x / mp.exp(x), -half, half, bits)
        show("log", log, sizes[1], lambda z: z / 2, 0, mp.mpf("0.04"), bits)
        show("log in parts", parts, sizes[2], lambda z: z * z / 2, 0, mp.mpf("0.04"), bits)
        show("sin", *of_square(mp.sin)[:1], sizes[3], of_square(mp.sin)[1], 0, (mp.pi / 2 + (0.02 if bits == 24 else 0)) ** 2, bits)
        show("asin", of_square(mp.asin)[0], sizes[4], of_square(mp.asin)[1], 0, mp.mpf("0.25"), bits)
        show("atan", of_square(mp.atan)[0], sizes[5], of_square(mp.atan)[1], 0, mp.mpf("0.17158"), bits)
        near = lambda z: mp.erf(mp.sqrt(away(z))) / mp.sqrt(away(z)) - 1
        show("erf", near, sizes[6], lambda z: 1 / (1 + near(z)), 0, mp.mpf("0.5625"), bits)
        far = lambda t: mp.log(mp.erfc(t + mp.mpf("0.75")))
        show("log erfc", far, sizes[7], lambda t: mp.erfc(t + mp.mpf("0.75")), 0, mp.mpf("5.2" if bits == 53 else "3.2"), bits)
        show("lgamma", gamma, sizes[8], lambda w: w * away(w) / abs(mp.loggamma(2 + away(w))), -0.5, 0.5, bits, 250)


main()
