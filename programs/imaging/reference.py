#!/usr/bin/env python3
"""Holds the programs of this folder against numpy.

Each pipeline is written here a second time, in the same scalar types and with the same order of
additions, but not in the same way. Small images are made up, and the results of the tool are
compared bit for bit, or to 1e-5 where a pipeline has exponentials or powers.

`programs/compare.py` says with which options.
"""

import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parent))
import compare  # noqa: E402

EXACT, CLOSE = 0.0, 1e-5
F = np.float32


# Images

def noise(height, width, *channels, below=17, seed=0):
    """Numbers from 0 to below - 1 that look random."""
    shape = (height, width, *channels)
    at = np.arange(np.prod(shape), dtype=np.uint64) + np.uint64(1000 * seed + 1)
    for factor in (0x9E3779B1, 0x85EBCA6B):
        at = (at * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
        at ^= at >> np.uint64(15)
    return (at % np.uint64(below)).astype(np.int64).reshape(shape)


def bright(*shape, seed=0):
    """An image with values from 1/16 to 1, short to write."""
    return ((noise(*shape, below=16, seed=seed) + 1) / 16).astype(F)


def signed(*shape, seed=0):
    """Weights from -1 to 1, short to write."""
    return ((noise(*shape, below=17, seed=seed) - 8) / 8).astype(F)


def network(side, coarse, fine, seed=0):
    """The weights of `learned_demosaic`, of kernels of some side, by how many channels its layers have."""
    shapes = [(side, side, 1, coarse[0]), coarse[:2], coarse[1:],
              (side, side, 1 + coarse[2], fine[0]), fine[:2], fine[1:]]
    weights = [signed(*s, seed=seed + k) for k, s in enumerate(shapes)]
    biases = [bright(1, s[-1], seed=seed + k)[0] for k, s in enumerate(shapes)]
    filters = [signed(side, side, fine[2], seed=seed + 6), signed(side, side, 3, seed=seed + 7)]
    return [a for pair in zip(weights, biases) for a in pair] + filters


def pair(height, width, seed=0):
    """Two views of a wall of random colours, whose lower part stands nearer: it has moved by two pixels, not by one."""
    left = noise(height, width, 3, below=256, seed=seed).astype(np.uint8)
    right = np.roll(left, -1, axis=1)
    right[height // 2:] = np.roll(left[height // 2:], -2, axis=1)
    return [left, right]


def see_through(height, width, seed=0):
    """An image with colours and alpha, half of whose pixels are transparent; the first one is not."""
    image = bright(height, width, 4, seed=seed)
    image[..., 3] = np.maximum(noise(height, width, below=5, seed=seed + 1) - 2, 0) / 2
    image[0, 0, 3] = 1
    return image


def taken(image, axis, at):
    """The rows or columns `at`; those outside are the ones at the border."""
    return np.take(image, np.clip(at, 0, image.shape[axis] - 1), axis)


def moved(image, axis, offset):
    return taken(image, axis, np.arange(image.shape[axis]) + offset)


def window(image, y, x, margin):
    """What is `y` rows and `x` columns on from each pixel, without the last `margin` of them."""
    h, w = image.shape
    return image[y:h - margin + y, x:w - margin + x]


def sum_of(terms):
    """Added from left to right."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def brightness(image):
    return F(0.299) * image[..., 0] + F(0.587) * image[..., 1] + F(0.114) * image[..., 2]


# Pipelines

def blur(image):
    three = image.dtype.type(3)
    divide = np.floor_divide if image.dtype.kind == "u" else np.divide
    across = divide(image[:, :-2] + image[:, 1:-1] + image[:, 2:], three)
    return divide(across[:-2] + across[1:-1] + across[2:], three)


def corner_sums(height, width):
    y, x = np.arange(height + 1.0)[:, None], np.arange(width + 1.0)
    g = np.sqrt(np.cos(x) + np.sin(y))
    return g[:-1, 1:] + g[:-1, :-1] + g[1:, 1:] + g[1:, :-1]


def row_sums(image):
    for _ in range(2):
        image = image[:, :-2] + image[:, 1:-1] + image[:, 2:] / 3
    return image


def index_sums(height, width):
    return np.add.outer(np.arange(height), np.arange(width))


def unsharp(image):
    gray = brightness(image)
    kernel = [np.exp(-F(d * d) / F(4.5)) for d in range(-3, 4)]
    total = sum_of(kernel)
    blurred = gray
    for axis in (0, 1):
        blurred = sum_of([tap / total * moved(blurred, axis, k - 3) for k, tap in enumerate(kernel)])
    return ((F(2) * gray - blurred) / gray)[..., None] * image


def harris(image):
    gray = brightness(image)

    def slope(at):
        end, start = (sum_of([w * window(gray, *at(side, k), 2) for k, w in enumerate((F(1), F(2), F(1)))])
                      for side in (2, 0))
        return (end - start) * F(1 / 12)

    def summed(products):
        return sum_of([window(products, i, j, 2) for i in range(3) for j in range(3)])

    ix, iy = slope(lambda side, k: (k, side)), slope(lambda side, k: (side, k))
    sxx, syy, sxy = summed(ix * ix), summed(iy * iy), summed(ix * iy)
    trace = sxx + syy
    return (sxx * syy - sxy * sxy - F(0.04) * (trace * trace))[1:-1, 1:-1]


def stencil_chain(image, times):
    for _ in range(times):
        image = sum_of([np.uint16((i + 3) * (j + 3)) * moved(moved(image, 0, i), 1, j)
                        for i in range(-2, 3) for j in range(-2, 3)])
    return image


def max_filter(image, radius):
    reach = range(-radius, radius + 1)
    inside = [(dy, dx) for dy in reach for dx in reach if dx * dx + dy * dy <= radius * radius + 0.25]
    return np.max([moved(moved(image, 0, dy), 1, dx) for dy, dx in inside], axis=0)


def iir_blur(image, alpha):
    keep = F(1) - F(alpha)
    for axis in (0, 1):
        rows = np.moveaxis(image.copy(), axis, 0)
        for _ in ("down", "up"):
            for y in range(1, len(rows)):
                rows[y] = F(alpha) * rows[y] + keep * rows[y - 1]
            rows = rows[::-1]
        image = np.moveaxis(rows, 0, axis)
    return image


def histogram(image):
    wide = image.astype(np.int64)
    luma = (77 * wide[..., 0] + 150 * wide[..., 1] + 29 * wide[..., 2]) // 256
    darker = np.cumsum(np.bincount(luma.ravel(), minlength=256))
    change = darker[luma] * 255 // luma.size - luma
    return np.clip(wide + change[..., None], 0, 255).astype(np.uint8)


def interpolate(image):
    levels = [np.concatenate([image[..., :3] * image[..., 3:], image[..., 3:]], axis=2)]
    for _ in range(9):
        down = levels[-1]
        for axis in (0, 1):
            even = np.arange(0, down.shape[axis], 2)
            before, after = taken(down, axis, even - 1), taken(down, axis, even + 1)
            down = F(0.25) * (before + F(2) * taken(down, axis, even) + after)
        levels.append(down)
    filled = levels.pop()
    while levels:
        own = levels.pop()
        for axis in (0, 1):
            at = np.arange(own.shape[axis])
            filled = F(0.5) * (taken(filled, axis, at // 2) + taken(filled, axis, (at + 1) // 2))
        filled = filled * (F(1) - own[..., 3:]) + own
    return filled[..., :3] / filled[..., 3:]


def bilateral_grid(image, s_sigma, r_sigma):
    h, w = image.shape
    level = np.clip(image, F(0), F(1)) / F(r_sigma)
    grid = np.zeros((2, h // s_sigma + 2, w // s_sigma + 2, int(F(1) / F(r_sigma)) + 2), F)
    for y, x in np.ndindex(h, w):
        cell = (y + s_sigma // 2) // s_sigma, (x + s_sigma // 2) // s_sigma, int(F(0.5) + level[y, x])
        grid[(0, *cell)] += image[y, x]
        grid[(1, *cell)] += F(1)
    for axis in (3, 2, 1):
        margins = [(2, 2) if a == axis else (0, 0) for a in range(4)]
        wide = np.pad(grid, margins)
        at = np.arange(grid.shape[axis])
        grid = sum_of([F(k) * np.take(wide, at + i, axis) for i, k in enumerate((1, 4, 6, 4, 1))])
    output = np.empty_like(image)
    for y, x in np.ndindex(h, w):
        z = int(level[y, x])
        corner = grid[:, y // s_sigma:, x // s_sigma:, z:][:, :2, :2, :2]
        for t in (F(y % s_sigma) / F(s_sigma), F(x % s_sigma) / F(s_sigma), level[y, x] - F(z)):
            corner = corner[:, 0] + t * (corner[:, 1] - corner[:, 0])
        output[y, x] = corner[0] / corner[1]
    return output


def bgu(small, wanted, image, s_sigma, r_sigma):
    (p, q, _), (h, w, _) = small.shape, image.shape

    def level(pixel):
        gray = F(0.25) * pixel[0] + F(0.5) * pixel[1] + F(0.25) * pixel[2]
        return min(max(gray, F(0)), F(1)) / F(r_sigma)

    grid = np.zeros((p // s_sigma + 2, q // s_sigma + 2, int(F(1) / F(r_sigma)) + 2, 4, 7), F)
    for y, x in np.ndindex(p, q):
        cell = (y + s_sigma // 2) // s_sigma, (x + s_sigma // 2) // s_sigma, int(F(0.5) + level(small[y, x]))
        colour = np.append(small[y, x], F(1))
        grid[cell] += np.outer(colour, np.append(colour, wanted[y, x]))
    taps = [F(1) / F(d ** 3) for d in (4, 3, 2, 1, 2, 3, 4)]
    for axis in (2, 0, 1):
        wide = np.pad(grid, [(3, 3) if a == axis else (0, 0) for a in range(5)])
        at = np.arange(grid.shape[axis])
        grid = sum_of([tap * np.take(wide, at + i, axis) for i, tap in enumerate(taps)])
    little = F(1e-4) * (F(1) + grid[..., 3:, 3])
    for i in range(4):
        grid[..., i, [i, i + 4][:2 - i // 3]] += little
    maps = np.zeros((*grid.shape[:3], 4, 3), F)
    for t in range(3):
        factors = grid[..., t, t + 1:4] / grid[..., t, t, None]
        grid[..., t + 1:, :] -= factors[..., None] * grid[..., t, None, :]
    for i in (3, 2, 1, 0):
        rest = grid[..., i, 4:].copy()
        for j in range(3, i, -1):
            rest -= grid[..., i, j, None] * maps[..., j, :]
        maps[..., i, :] = rest / grid[..., i, i, None]
    output = np.empty_like(image)
    for y, x in np.ndindex(h, w):
        (row, fy), (column, fx) = (divmod(i * m, n * s_sigma) for i, m, n in ((y, p, h), (x, q, w)))
        at = level(image[y, x])
        corner = maps[row:, column:, int(at):][:2, :2, :2]
        for t in (F(fy) / F(h * s_sigma), F(fx) / F(w * s_sigma), at - F(int(at))):
            corner = corner[0] + t * (corner[1] - corner[0])
        output[y, x] = sum_of([corner[k] * image[y, x, k] for k in range(3)]) + corner[3]
    return output


def halved(image):
    for axis in (0, 1):
        at = np.arange(0, image.shape[axis], 2)
        taps = [F(w) * taken(image, axis, at + k) for k, w in ((-1, 1), (0, 3), (1, 3), (2, 1))]
        image = sum_of(taps) / F(8)
    return image


def doubled(image, like):
    for axis in (0, 1):
        at = np.arange(like.shape[axis])
        beside = at // 2 + np.where(at % 2 == 0, -1, 1)
        image = F(0.75) * taken(image, axis, at // 2) + F(0.25) * taken(image, axis, beside)
    return image


def local_laplacian(gray, levels, alpha, beta):
    def gaussian(image):
        pyramid = [image]
        for _ in range(3):
            pyramid.append(halved(pyramid[-1]))
        return pyramid

    def differences(pyramid):
        return [a - doubled(b, a) for a, b in zip(pyramid, pyramid[1:])] + pyramid[-1:]

    def remapped(k):
        level = F(k) / F(levels - 1)
        d = gray - level
        f = d * F(levels - 1)
        return F(beta) * d + level + F(alpha) * (f * np.exp(-(f * f) / F(2)))

    stacks = zip(*(differences(gaussian(remapped(k))) for k in range(levels)))
    mixed = []
    for stack, guide in zip(stacks, gaussian(gray)):
        level = guide * F(levels - 1)
        below = np.clip(level.astype(np.int64), 0, levels - 2)
        pick = lambda k: np.take_along_axis(np.array(stack), k[None], 0)[0]
        t = level - below.astype(F)
        mixed.append((F(1) - t) * pick(below) + t * pick(below + 1))
    output = mixed.pop()
    while mixed:
        own = mixed.pop()
        output = own + doubled(output, own)
    return output


def nl_means(image, patch, search, inv):
    h, w, _ = image.shape
    margin = patch + search
    wide = np.pad(image, ((margin, margin), (margin, margin), (0, 0)), mode="edge")
    around = np.pad(image, ((patch, patch), (patch, patch), (0, 0)), mode="edge")
    total, weighted = F(0), F(0)
    for dy, dx in np.ndindex(2 * search + 1, 2 * search + 1):
        shifted = wide[dy:dy + h + 2 * patch, dx:dx + w + 2 * patch]
        difference = sum_of([d * d for d in np.moveaxis(around - shifted, 2, 0)])
        down = sum_of([difference[k:k + h] for k in range(2 * patch + 1)])
        distance = sum_of([down[:, k:k + w] for k in range(2 * patch + 1)])
        weight = np.exp(-(F(inv) * distance))
        total = total + weight
        weighted = weighted + weight[..., None] * shifted[patch:patch + h, patch:patch + w]
    return weighted / total[..., None]


def lens_blur(left, right, slices, focus, blur, samples):
    h, w, _ = left.shape
    seen = left.astype(np.int64)
    shifts = [seen - moved(right, 1, -z) for z in range(slices)]
    cost = np.array([(d * d).sum(axis=2) for d in shifts]).astype(F)
    mean = sum_of(cost) / F(slices)
    confidence = F(1) + np.maximum(sum_of(cost * cost) / F(slices) - mean * mean, F(0))
    pyramid = [np.moveaxis(np.array([*(cost * confidence), confidence]), 0, 2)]
    for _ in range(7):
        pyramid.append(halved(pyramid[-1]))
    smooth = pyramid.pop()
    while pyramid:
        own = pyramid.pop()
        smooth = F(0.5) * (doubled(smooth, own) + own)
    depth = np.argmin(smooth[..., :-1] / smooth[..., -1:], axis=2)
    radius = F(blur) * np.abs(depth - focus).astype(F)
    most = int(F(blur) * F(max(focus, slices - focus)))
    reach = radius
    for axis in (0, 1):
        reach = np.max([moved(reach, axis, k) for k in range(-most, most + 1)], axis=0)

    def random(counter):
        bits = (counter + 1) * 2654435761 % 2 ** 32
        bits = (bits ^ bits // 2 ** 15) * 2246822507 % 2 ** 32
        return F((bits ^ bits // 2 ** 15) // 2 ** 8) / F(2 ** 23) - F(1)

    output = np.empty_like(left)
    for y, x in np.ndindex(h, w):
        lights = [seen[y, x]]
        for s in range(samples):
            counter = 2 * (s + samples * (x + w * y))
            dy, dx = (int(random(counter + k) * reach[y, x]) for k in (0, 1))
            at = min(max(y + dy, 0), h - 1), min(max(x + dx, 0), w - 1)
            distance = dy * dy + dx * dx
            if distance < radius[at] ** 2 and (distance < radius[y, x] ** 2 or depth[at] > depth[y, x]):
                lights.append(seen[at])
        output[y, x] = F(0.5) + np.sum(lights, axis=0).astype(F) / F(len(lights))
    return output


GREENS, REDS, BLUES = {(0, 0), (1, 1)}, {(0, 1)}, {(1, 0)}
AROUND = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]


def camera_pipe(raw, matrix, gamma):
    h, w = (n // 2 * 2 for n in raw.shape)

    def pixel(image, y, x):
        """The pixel, or the nearest one of the same colour in its row and column."""
        y, x = (i + 2 if i < 0 else i - 2 if i >= n else i for i, n in ((y, h), (x, w)))
        return int(image[y, x])

    def calm(y, x):
        near = [pixel(raw, y + dy, x + dx) for dy, dx in ((-2, 0), (2, 0), (0, -2), (0, 2))]
        return min(max(int(raw[y, x]), min(near)), max(near))

    def colour(image, y, x, places):
        if (y % 2, x % 2) in places:
            return int(image[y, x])
        near = [pixel(image, y + dy, x + dx) for dy, dx in AROUND if ((y + dy) % 2, (x + dx) % 2) in places]
        return sum(near) // len(near)

    calmed = np.array([[calm(y, x) for x in range(w)] for y in range(h)])
    output = np.zeros((h, w, 3), np.uint8)
    for y, x in np.ndindex(h, w):
        seen = [colour(calmed, y, x, places) for places in (REDS, GREENS, BLUES)]
        for c, row in enumerate(matrix):
            level = min(max(sum(a * b for a, b in zip(row, seen)) // 256, 0), 1023)
            output[y, x, c] = int(F(0.5) + F(255) * (F(level) / F(1023)) ** (F(1) / F(gamma)))
    return output


def around(images, height, width):
    """Of images[n, y, x, …], those moved to each place of a kernel."""
    return [moved(moved(images, 1, i - height // 2), 2, j - width // 2) for i, j in np.ndindex(height, width)]


def layer(images, weight, bias):
    """Of a kernel, or of one pixel."""
    if weight.ndim == 4:
        images = np.concatenate(around(images, *weight.shape[:2]), axis=-1)
    flat = weight.reshape(-1, weight.shape[-1])
    return sum_of([images[..., k, None] * row for k, row in enumerate(flat)]) + bias


def relu(images):
    return np.maximum(images, F(0))


def learned_demosaic(mosaics, *weights):
    n, h, w = mosaics.shape
    *layers, green_filters, chroma_filters = weights
    layers = list(zip(layers[::2], layers[1::2]))

    def filtered(images, filters):
        flat = filters.reshape(-1, filters.shape[-1])
        return sum_of([a[..., None] * f for a, f in zip(around(images, *filters.shape[:2]), flat)])

    rows, columns = np.arange(0, h, 3), np.arange(0, w, 3)
    seen = sum_of([taken(taken(mosaics, 1, rows + i), 2, columns + j)
                   for i in range(-1, 4) for j in range(-1, 4)]) / F(25)
    coarse = seen[..., None]
    for weight, bias in layers[:3]:
        coarse = relu(layer(coarse, weight, bias))
    fine = np.concatenate([mosaics[..., None], coarse.repeat(3, 1).repeat(3, 2)[:, :h, :w]], axis=-1)
    for weight, bias in layers[3:5]:
        fine = relu(layer(fine, weight, bias))
    scores = layer(fine, *layers[5])
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares = np.moveaxis(raised, -1, 0) / sum_of(list(np.moveaxis(raised, -1, 0)))
    green = sum_of([a * b for a, b in zip(shares, np.moveaxis(filtered(mosaics, green_filters), -1, 0))])
    green[:, ::2, ::2], green[:, 1::2, 1::2] = mosaics[:, ::2, ::2], mosaics[:, 1::2, 1::2]
    beside, over, across = (green + c for c in np.moveaxis(filtered(mosaics - green, chroma_filters), -1, 0))
    output = np.stack([across, green, across], axis=-1)
    for c, y, x, source in ((0, 0, 0, beside), (0, 0, 1, mosaics), (0, 1, 1, over),
                            (2, 0, 0, over), (2, 1, 0, mosaics), (2, 1, 1, beside)):
        output[:, y::2, x::2, c] = source[:, y::2, x::2]
    return output


# What is run: of each file, the definition, its arguments, the reference (or the failure), the tolerance.

MATRIX = [[300, -60, 16], [-40, 330, -34], [10, -90, 336]]


def small(make):
    return make(1, 2, 3)


CASES = {
    "toy": [
        ("corner_sums", [1, 1], corner_sums, CLOSE),
        ("corner_sums", [2, 1], corner_sums, CLOSE),
        ("corner_sums", [3, 1], corner_sums, CLOSE),
        ("row_sums", [np.array([[1, 2, 3.5, 4, 5.25, 6, -7], [0.5, 1, 2, 4, 8, 16, 32]])], row_sums, EXACT),
        ("row_sums", [np.array([[0.25, 0.5, -1, 2, 0.75]])], row_sums, EXACT),
        ("row_sums", [np.array([[1.0, 2.0]])], "negative size", EXACT),
        ("index_sums", [2, 3], index_sums, EXACT),
        ("index_sums", [1, 1], index_sums, EXACT),
    ],
    "blur": [
        ("blur", [noise(7, 9, below=20000).astype(np.uint16)], blur, EXACT),
        ("blur", [noise(3, 5, below=65536, seed=1).astype(np.uint16)], blur, EXACT),
        ("blur", [noise(1, 2).astype(np.uint16)], "negative size", EXACT),
        ("blur_float", [bright(9, 7)], blur, EXACT),
        ("blur_float", [bright(3, 3)], blur, EXACT),
    ],
    "unsharp": [
        ("unsharp", [bright(5, 7, 3)], unsharp, CLOSE),
        ("unsharp", [small(bright)], unsharp, CLOSE),
    ],
    "harris": [
        ("harris", [bright(9, 11, 3)], harris, EXACT),
        ("harris", [bright(11, 7, 3, seed=1)], harris, EXACT),
        ("harris", [small(bright)], "negative size", EXACT),
    ],
    "stencil_chain": [
        ("stencil_chain", [noise(7, 9, below=65536).astype(np.uint16), 1], stencil_chain, EXACT),
        ("stencil_chain", [noise(5, 7, below=65536, seed=1).astype(np.uint16), 32], stencil_chain, EXACT),
        ("stencil_chain", [noise(1, 2).astype(np.uint16), 3], stencil_chain, EXACT),
        ("stencil_chain", [noise(3, 5).astype(np.uint16), 0], stencil_chain, EXACT),
        ("chain_of_four", [noise(9, 7, below=1024).astype(np.uint16)], lambda image: stencil_chain(image, 4), EXACT),
        ("chain_of_four", [noise(1, 2).astype(np.uint16)], lambda image: stencil_chain(image, 4), EXACT),
    ],
    "max_filter": [
        ("max_filter", [bright(7, 9, 3), 2], max_filter, EXACT),
        ("max_filter", [bright(9, 7, 1), 4], max_filter, EXACT),
        ("max_filter", [bright(3, 5, 3), 0], max_filter, EXACT),
        ("max_filter", [small(bright), 3], max_filter, EXACT),
    ],
    "iir_blur": [
        ("iir_blur", [bright(5, 7, 3), 0.25], iir_blur, EXACT),
        ("iir_blur", [bright(9, 3, 3, seed=1), 0.7], iir_blur, EXACT),
        ("iir_blur", [small(bright), 0.5], iir_blur, EXACT),
    ],
    "histogram": [
        ("histogram", [noise(7, 9, 3, below=256).astype(np.uint8)], histogram, EXACT),
        ("histogram", [noise(5, 3, 3, below=40, seed=1).astype(np.uint8)], histogram, EXACT),
        ("histogram", [small(noise).astype(np.uint8)], histogram, EXACT),
    ],
    "interpolate": [
        ("interpolate", [see_through(5, 7)], interpolate, EXACT),
        ("interpolate", [see_through(9, 3, seed=2)], interpolate, EXACT),
        ("interpolate", [see_through(1, 2, seed=1)], interpolate, EXACT),
    ],
    "bilateral_grid": [
        ("bilateral_grid", [bright(7, 9), 3, 0.1], bilateral_grid, EXACT),
        ("bilateral_grid", [bright(9, 5, seed=1), 4, 0.25], bilateral_grid, EXACT),
        ("bilateral_grid", [bright(1, 2), 8, 0.2], bilateral_grid, EXACT),
    ],
    "bgu": [
        ("bgu", [bright(4, 3, 3), bright(4, 3, 3, seed=1), bright(6, 7, 3, seed=2), 2, 0.5], bgu, EXACT),
        ("bgu", [bright(5, 1, 3), bright(5, 1, 3, seed=1), bright(10, 2, 3, seed=2), 3, 0.125], bgu, EXACT),
        ("bgu", [small(bright), bright(1, 2, 3, seed=1), bright(2, 3, 3), 16, 0.125], bgu, EXACT),
    ],
    "lens_blur": [
        ("lens_blur", [*pair(6, 7), 4, 1, 2.5, 3], lens_blur, EXACT),
        ("lens_blur", [*pair(5, 9, seed=1), 3, 3, 0.75, 8], lens_blur, EXACT),
        ("lens_blur", [*pair(1, 3), 3, 1, 4.0, 4], lens_blur, EXACT),
    ],
    "local_laplacian": [
        ("local_laplacian", [bright(9, 11), 4, 0.5, 0.75], local_laplacian, CLOSE),
        ("local_laplacian", [bright(7, 5, seed=1), 8, 0.125, 1.0], local_laplacian, CLOSE),
        ("local_laplacian", [bright(1, 2), 2, 1.0, 1.0], local_laplacian, CLOSE),
    ],
    "nl_means": [
        ("nl_means", [bright(5, 7, 3), 1, 2, 0.5], nl_means, CLOSE),
        ("nl_means", [bright(7, 3, 3, seed=1), 2, 1, 0.25], nl_means, CLOSE),
        ("nl_means", [small(bright), 1, 1, 1.0], nl_means, CLOSE),
    ],
    "camera_pipe": [
        ("camera_pipe", [noise(8, 10, below=1024).astype(np.uint16), MATRIX, 2.2], camera_pipe, EXACT),
        ("camera_pipe", [noise(7, 5, below=1024, seed=1).astype(np.uint16), MATRIX, 1.8], camera_pipe, EXACT),
        ("camera_pipe", [noise(2, 4, below=1024).astype(np.uint16), MATRIX, 2.2], camera_pipe, EXACT),
    ],
    "learned_demosaic": [
        ("learned_demosaic", [bright(1, 7, 5), *network(3, (2, 3, 2), (2, 1, 3), seed=91)], learned_demosaic, CLOSE),
        ("learned_demosaic", [bright(2, 3, 4), *network(5, (1, 2, 1), (1, 2, 2), seed=5)], learned_demosaic, CLOSE),
        ("learned_demosaic", [bright(1, 1, 2), *network(3, (1, 1, 1), (1, 1, 2), seed=177)], learned_demosaic, CLOSE),
    ],
}


if __name__ == "__main__":
    compare.main(HERE, CASES)
