#!/usr/bin/env python3
"""Pipelines of `programs/imaging/` in Halide, under its schedulers and under a schedule by hand.

    peers.py                            the version of Halide, or nothing where there is none
    peers.py FOLDER NAME WAY THREADS    compiles NAME for `FOLDER/NAME.npy`, scheduled by `mullapudi`, `adams` or by `hand`;
                                        prints the seconds of the search, then, for each line that comes in, those of the
                                        fastest call, and at the end how far it is off `FOLDER/NAME_result.npy`, as a part of
                                        its greatest magnitude

Types, sizes, borders and results are those of the programs beside which they are timed. Channels are planes, as Halide's
own applications have them: the programs of Daedal have them innermost.
"""

import json
import math
import os
import sys
import time

import numpy as np

try:
    import halide as hl
except ImportError:
    sys.exit(0)

# Seconds in which calls are repeated, for each way.
SECONDS = 0.3
# Numbers in a vector of floats, and of 16-bit integers, by hand.
FLOATS, SHORTS = 16, 32

x, y, c, z, k = (hl.Var(n) for n in "xyczk")
xi, xo, yi, yo = (hl.Var(n) for n in ("xi", "xo", "yi", "yo"))


def real(number):
    return hl.f32(float(number))


def stages(*names):
    return [hl.Func(name) for name in names]


def clamped(func, *extents):
    """What repeats its borders."""
    return hl.BoundaryConditions.repeat_edge(func, [(0, e) for e in extents])


def brightness(image):
    gray = hl.Func("gray")
    gray[x, y] = real(0.299) * image[x, y, 0] + real(0.587) * image[x, y, 1] + real(0.114) * image[x, y, 2]
    return gray


# Each takes the image and its extents from the innermost on, and makes the output, its extents, and what schedules by hand, if anything.

def blur(image, w, h):
    across, down = stages("across", "down")
    across[x, y] = (image[x, y] + image[x + 1, y] + image[x + 2, y]) / hl.u16(3)
    down[x, y] = (across[x, y] + across[x, y + 1] + across[x, y + 2]) / hl.u16(3)

    def by_hand():
        down.split(y, yo, yi, 64).parallel(yo).vectorize(x, SHORTS)
        across.store_at(down, yo).compute_at(down, yi).vectorize(x, SHORTS)

    return down, (w - 2, h - 2), by_hand


def unsharp(image, w, h, channels):
    taps = [math.exp(-(t - 3) ** 2 / (2 * 1.5 * 1.5)) for t in range(7)]
    taps = [real(t / sum(taps)) for t in taps]
    gray = brightness(clamped(image, w, h, channels))
    down, blurred, ratio, output = stages("down", "blurred", "ratio", "output")
    down[x, y] = sum((taps[t] * gray[x, y + t - 3] for t in range(1, 7)), taps[0] * gray[x, y - 3])
    blurred[x, y] = sum((taps[t] * down[x + t - 3, y] for t in range(1, 7)), taps[0] * down[x - 3, y])
    ratio[x, y] = (real(2) * gray[x, y] - blurred[x, y]) / gray[x, y]
    output[x, y, c] = ratio[x, y] * image[x, y, c]

    def by_hand():
        output.split(y, yo, yi, 64).reorder(x, c, yi, yo).parallel(yo).vectorize(x, FLOATS)
        for func in (gray, down, ratio):
            func.store_at(output, yo).compute_at(output, yi).vectorize(x, FLOATS)

    return output, (w, h, channels), by_hand


def harris(image, w, h, channels):
    gray = brightness(image)
    ix, iy, output = stages("ix", "iy", "corners")
    twelfth = real(1 / 12)

    def slope(far, near):
        return twelfth * (far(0) + real(2) * far(1) + far(2) - (near(0) + real(2) * near(1) + near(2)))

    ix[x, y] = slope(lambda t: gray[x + 2, y + t], lambda t: gray[x, y + t])
    iy[x, y] = slope(lambda t: gray[x + t, y + 2], lambda t: gray[x + t, y])

    def total(name, p, q):
        product, both = stages("i" + name, "s" + name)
        product[x, y] = p[x, y] * q[x, y]
        both[x, y] = sum((product[x + t % 3, y + t // 3] for t in range(1, 9)), product[x, y])
        return both

    sxx, syy, sxy = total("xx", ix, ix), total("yy", iy, iy), total("xy", ix, iy)
    det, trace = stages("det", "trace")
    det[x, y] = sxx[x, y] * syy[x, y] - sxy[x, y] * sxy[x, y]
    trace[x, y] = sxx[x, y] + syy[x, y]
    t = trace[x + 1, y + 1]
    output[x, y] = det[x + 1, y + 1] - real(0.04) * t * t

    def by_hand():
        output.split(y, yo, yi, 64).parallel(yo).vectorize(x, FLOATS)
        for func in (gray, ix, iy):
            func.store_at(output, yo).compute_at(output, yi).vectorize(x, FLOATS)
        ix.compute_with(iy, x)

    return output, (w - 6, h - 6), by_hand


def stencil_chain(image, w, h, times=32):
    all_stages, last = [], clamped(image, w, h)
    for step in range(times):
        stage = hl.Func(f"stage_{step}")
        stage[x, y] = sum(hl.u16((t // 5 + 1) * (t % 5 + 1)) * last[x + t % 5 - 2, y + t // 5 - 2] for t in range(25))
        all_stages.append(stage)
        last = clamped(stage, w, h)

    # By hand, rows of several steps would slide down together; where borders repeat after each step, not just at the start,
    # that takes longer than what is found.
    return all_stages[-1], (w, h), None


def max_filter(image, w, h, channels, radius=26):
    half = [int(math.sqrt(0.25 + radius * radius - d * d)) for d in range(radius + 1)]
    level = [int(math.log2(1 + 2 * n)) for n in half]
    levels = 1 + int(math.log2(1 + 2 * radius))
    rows = h + 2 * radius
    windows, vertical, output = stages("windows", "vertical", "max_filter")
    halves, powers = stages("halves", "powers")
    d = hl.Var("d")
    halves[d], powers[d] = (hl.mux(d, [hl.i32(n) for n in table]) for table in (half, level))
    step = hl.RDom([(0, rows), (1, levels - 1)], "step")
    windows[x, y, c, k] = clamped(image, w, h, channels)[x, y - radius, c]
    before = windows[x, hl.min(step.x + (hl.i32(1) << (step.y - 1)), rows - 1), c, step.y - 1]
    windows[x, step.x, c, step.y] = hl.max(windows[x, step.x, c, step.y - 1], before)
    power = hl.clamp(powers[d], 0, levels - 1)
    reach = hl.clamp(halves[d], 0, radius)
    bottom = y + radius + reach + 1 - (hl.i32(1) << power)
    vertical[x, y, c, d] = hl.max(windows[x, y + radius - reach, c, power], windows[x, hl.clamp(bottom, 0, rows - 1), c, power])
    over = hl.RDom([(-radius, 2 * radius + 1)], "over")
    output[x, y, c] = hl.maximum(vertical[hl.clamp(x + over.x, 0, w - 1), y, c, hl.clamp(hl.i32(hl.abs(over.x)), 0, radius)])

    def by_hand():
        for table in (halves, powers):
            table.compute_root()
        output.split(x, xo, x, 128).reorder(x, y, xo, c).parallel(xo).parallel(c).vectorize(x, 2 * FLOATS)
        windows.compute_at(output, xo).vectorize(x, 2 * FLOATS)
        windows.update().reorder(x, step.x, step.y, c).vectorize(x, 2 * FLOATS)

    return output, (w, h, channels), by_hand


def iir_blur(image, w, h, channels, alpha=0.25):
    passes = []

    def columns(source, height, name):
        running, turned = stages(name, name + "_turned")
        row = hl.RDom([(1, height - 1)], name + "_row")
        running[x, y, c] = hl.undef(hl.Float(32))
        running[x, 0, c] = source[x, 0, c]
        running[x, row.x, c] = real(alpha) * source[x, row.x, c] + real(1 - alpha) * running[x, row.x - 1, c]
        up = height - 1 - row.x
        running[x, up, c] = real(alpha) * running[x, up, c] + real(1 - alpha) * running[x, up + 1, c]
        turned[x, y, c] = running[y, x, c]
        passes.append((running, turned, row))
        return turned

    output = columns(columns(image, h, "down"), w, "across")

    def by_hand():
        # A thread takes some columns of one channel through all rows, and writes them turned.
        for running, turned, row in passes:
            turned.compute_root().split(y, yo, yi, 32).split(x, xo, xi, 16).reorder(yi, xi, xo, yo, c)
            turned.vectorize(yi, FLOATS).unroll(xi).parallel(yo).parallel(c)
            running.compute_at(turned, yo).update(0).vectorize(x, 2 * FLOATS)
            for update in (1, 2):
                running.update(update).reorder(x, row.x).vectorize(x, 2 * FLOATS)

    return output, (w, h, channels), by_hand


def bilateral_grid(image, w, h, side=8, range_sigma=0.1):
    depth = int(1 / range_sigma)
    level, grid, output = stages("level", "grid", "bilateral")
    blurred = stages("blur_z", "blur_x", "blur_y")
    # Multiplied by its inverse, a brightness between two cells would be rounded to the other.
    level[x, y] = hl.strict_float(hl.clamp(image[x, y], real(0), real(1)) / real(range_sigma))
    r = hl.RDom([(0, side), (0, side)], "r")
    px, py = x * side + r.x - side // 2, y * side + r.y - side // 2
    r.where((px >= 0) & (px < w) & (py >= 0) & (py < h))
    px, py = hl.clamp(px, 0, w - 1), hl.clamp(py, 0, h - 1)
    grid[x, y, z, c] = real(0)
    cell = hl.clamp(hl.i32(level[px, py] + real(0.5)), 0, depth)
    grid[x, y, cell, c] += hl.mux(c, [image[px, py], real(1)])
    weights = [real(n) for n in (1, 4, 6, 4, 1)]
    blurred[0][x, y, z, c] = sum(weights[t] * grid[x, y, z + t - 2, c] for t in range(5))
    blurred[1][x, y, z, c] = sum(weights[t] * blurred[0][x + t - 2, y, z, c] for t in range(5))
    blurred[2][x, y, z, c] = sum(weights[t] * blurred[1][x, y + t - 2, z, c] for t in range(5))
    z0 = hl.clamp(hl.i32(level[x, y]), 0, depth)
    fz, fx, fy = level[x, y] - hl.f32(z0), hl.f32(x % side) / real(side), hl.f32(y % side) / real(side)

    def mixed(a, b, t):
        return a + t * (b - a)

    def at(t, n):
        sheet = [[blurred[2][x // side + i, y // side + j, z0 + t, n] for j in (0, 1)] for i in (0, 1)]
        return mixed(*(mixed(*column, fy) for column in sheet), fx)

    smooth = hl.Func("smooth")
    smooth[x, y, c] = mixed(at(0, c), at(1, c), fz)
    output[x, y] = smooth[x, y, 0] / smooth[x, y, 1]

    def by_hand():
        grid.compute_root().vectorize(x, FLOATS).parallel(y)
        grid.update().reorder(c, r.x, r.y, x, y).unroll(c).parallel(y)
        for func in blurred:
            func.compute_root().reorder(x, y, z, c).vectorize(x, FLOATS).parallel(y, 8)
        output.vectorize(x, FLOATS).parallel(y, 16)

    return output, (w, h), by_hand


def interpolate(image, w, h, channels, levels=10):
    whole, output = stages("premultiplied", "output")
    whole[x, y, c] = hl.select(c < 3, image[x, y, c] * image[x, y, 3], image[x, y, 3])
    extents, down = [(w, h)], [whole]
    for n in range(1, levels):
        across, coarse = stages(f"across_{n}", f"down_{n}")
        (pw, ph), fine = extents[-1], down[-1]
        rows = clamped(fine, pw, ph, 4)
        across[x, y, c] = (rows[x, 2 * y - 1, c] + real(2) * rows[x, 2 * y, c] + rows[x, 2 * y + 1, c]) * real(0.25)
        columns = clamped(across, pw, (ph + 1) // 2, 4)
        coarse[x, y, c] = (columns[2 * x - 1, y, c] + real(2) * columns[2 * x, y, c] + columns[2 * x + 1, y, c]) * real(0.25)
        extents.append(((pw + 1) // 2, (ph + 1) // 2))
        down.append(coarse)
    filled = [None] * (levels - 1) + [down[-1]]
    for n in reversed(range(levels - 1)):
        up_down, up, filled[n] = stages(f"up_down_{n}", f"up_{n}", f"filled_{n}")
        rows = clamped(filled[n + 1], *extents[n + 1], 4)
        up_down[x, y, c] = (rows[x, y // 2, c] + rows[x, (y + 1) // 2, c]) * real(0.5)
        columns = clamped(up_down, extents[n + 1][0], extents[n][1], 4)
        up[x, y, c] = (columns[x // 2, y, c] + columns[(x + 1) // 2, y, c]) * real(0.5)
        filled[n][x, y, c] = up[x, y, c] * (real(1) - down[n][x, y, 3]) + down[n][x, y, c]
    output[x, y, c] = filled[0][x, y, c] / filled[0][x, y, 3]

    def by_hand():
        for n in range(1, levels - 1):
            for func in (down[n], filled[n]):
                func.compute_root().reorder(x, c, y).parallel(y, 8).vectorize(x, FLOATS if n < 6 else 4)
        down[-1].compute_root()
        output.reorder(c, x, y).bound(c, 0, 3).unroll(c).split(y, yo, yi, 32).parallel(yo).vectorize(x, FLOATS)

    return output, (w, h, 3), by_hand


def histogram(image, w, h, channels):
    luma, counts, rows, cumulative, equalized, output = stages("luma", "counts", "rows", "cumulative", "equalized", "output")
    u16, u8 = (lambda e: hl.cast(hl.UInt(16), e)), (lambda e: hl.cast(hl.UInt(8), e))
    luma[x, y] = u8((u16(77) * u16(image[x, y, 0]) + u16(150) * u16(image[x, y, 1]) + u16(29) * u16(image[x, y, 2])) / u16(256))
    across, over, bins = hl.RDom([(0, w)], "across"), hl.RDom([(0, h)], "over"), hl.RDom([(1, 255)], "bins")
    rows[x, y] = hl.i32(0)
    rows[hl.i32(luma[across.x, y]), y] += hl.i32(1)
    counts[x] = hl.i32(0)
    counts[x] += rows[x, over.x]
    cumulative[x] = counts[0]
    cumulative[bins.x] = cumulative[bins.x - 1] + counts[bins.x]
    wide = hl.cast(hl.Int(64), cumulative[x])
    equalized[x] = u8(hl.i64(255) * wide / hl.i64(w * h))
    i16 = lambda e: hl.cast(hl.Int(16), e)
    moved = i16(equalized[hl.i32(luma[x, y])]) - i16(luma[x, y])
    output[x, y, c] = u8(hl.clamp(i16(image[x, y, c]) + moved, hl.i16(0), hl.i16(255)))

    def by_hand():
        rows.compute_root().vectorize(x, FLOATS).parallel(y, 64)
        rows.update().reorder(across.x, y).parallel(y, 64)
        counts.compute_root().vectorize(x, FLOATS).update().reorder(x, over.x).vectorize(x, FLOATS)
        cumulative.compute_root().update().unscheduled()
        equalized.compute_root().vectorize(x, FLOATS)
        output.bound(c, 0, 3).reorder(c, x, y).unroll(c).vectorize(x, SHORTS).parallel(y, 64)

    return output, (w, h, channels), by_hand


WAYS = {"mullapudi": "Mullapudi2016", "adams": "Adams2019", "hand": None}


def extents_known(parameter, extents):
    """Sizes are part of the program: as for Daedal, which compiles for those of a call."""
    stride = 1
    for dim, extent in enumerate(extents):
        parameter.dim(dim).set_bounds(0, extent)
        if dim:
            parameter.dim(dim).set_stride(stride)
        stride *= extent


def compiled(name, data, way, threads):
    """A call, its output, and seconds of the search."""
    extents = data.shape[::-1]
    types = {"float32": hl.Float(32), "uint16": hl.UInt(16), "uint8": hl.UInt(8)}
    image = hl.ImageParam(types[data.dtype.name], data.ndim, "image")
    extents_known(image, extents)
    output, sizes, by_hand = globals()[name](image, *extents)
    for dim, extent in enumerate(extents):
        image.dim(dim).set_estimate(0, extent)
    output.set_estimates([(0, e) for e in sizes])
    extents_known(output.output_buffer(), sizes)
    pipeline, target = hl.Pipeline(output), hl.get_host_target()
    start = time.perf_counter()
    if WAYS[way]:
        options = {"parallelism": threads}
        pipeline.apply_autoscheduler(target, hl.AutoschedulerParams(WAYS[way], options))
    elif by_hand:
        by_hand()
    else:
        sys.exit("there is no schedule by hand")
    seconds = time.perf_counter() - start
    call = pipeline.compile_to_callable([image], target)
    result = np.zeros(sizes[::-1], data.dtype)
    arguments = [hl.Buffer(data), hl.Buffer(result)]
    return (lambda: call(*arguments)), result, seconds


def planes(array):
    """Channels before rows."""
    return np.ascontiguousarray(np.moveaxis(array, -1, 0)) if array.ndim == 3 else array


def fastest(call):
    best, begin = math.inf, time.perf_counter()
    while time.perf_counter() - begin < SECONDS:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def off(result, want):
    want, result = planes(want).astype(np.float64), result.astype(np.float64)
    return float(np.abs(want - result).max() / max(np.abs(want).max(), 1e-30))


def main(folder, name, way, threads):
    libraries = os.path.join(os.path.dirname(hl.__file__), "lib64")
    if WAYS[way]:
        hl.load_plugin(os.path.join(libraries, f"libautoschedule_{WAYS[way].lower()}.so"))
    data = planes(np.load(os.path.join(folder, f"{name}.npy")))
    call, result, seconds = compiled(name, data, way, int(threads))
    call()
    print(seconds, flush=True)
    for _ in sys.stdin:
        print(fastest(call), flush=True)
    print(off(result, np.load(os.path.join(folder, f"{name}_result.npy"))), flush=True)


if len(sys.argv) > 1:
    main(*sys.argv[1:])
else:
    from importlib.metadata import version
    print(version("halide"))
