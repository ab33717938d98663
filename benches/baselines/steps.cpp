// Activations of a layer, and steps of a differential equation. Inputs and outputs of each entry stand before it.
#include "vectors.h"

namespace {

constexpr int64_t L = Lanes<double>::count;
constexpr double root = 0.7978845608028654, cubic = 0.044715;

// Half of x (1 + tanh(root (x + cubic x^3))), and its slope.
V gelu(V x, V& slope) {
  const V square = x * x, t = tanh_of(root * (x + cubic * (x * square)));
  slope = 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * (root * (1.0 + 3.0 * cubic * square));
  return 0.5 * x * (1.0 + t);
}

double gelus(int64_t n, const double* __restrict x, double* __restrict dx) {
  V sum{}, slope;
  int64_t i = 0;
  for (; i + L <= n; i += L) {
    sum += gelu(load(x + i), slope);
    if (dx) store(dx + i, slope);
  }
  double total = sum_of(sum);
  for (; i < n; ++i) {
    total += gelu(all(x[i]), slope)[0];
    if (dx) dx[i] = slope[0];
  }
  return total;
}

Kept<double> states;

// The states before all steps are kept where `keep` says so.
double swing(int64_t n, Inputs in, double* keep) {
  const double *start = (const double*)in[0], f = *(const double*)in[1], *dts = (const double*)in[2];
  double angle = start[0], speed = start[1];
  for (int64_t i = 0; i < n; ++i) {
    if (keep) keep[2 * i] = angle, keep[2 * i + 1] = speed;
    const double force = std::sin(angle) + f * speed;
    angle += dts[i] * speed;
    speed -= dts[i] * force;
  }
  return angle;
}

}  // namespace

// Size n. Input x[n]. Output value[1]; the gradient is by x.
BASELINE void gelu_primal(Sizes s, Inputs in, Outputs out) {
  *(double*)out[0] = gelus(s[0], (const double*)in[0], nullptr);
}
BASELINE void gelu_gradient(Sizes s, Inputs in, Outputs out) {
  *(double*)out[0] = gelus(s[0], (const double*)in[0], (double*)out[1]);
}

// Size n. Inputs start[2], friction[1], dts[n]. Output value[1], the last angle; the gradient is by all.
BASELINE void swing_primal(Sizes s, Inputs in, Outputs out) { *(double*)out[0] = swing(s[0], in, nullptr); }
BASELINE void swing_gradient(Sizes s, Inputs in, Outputs out) {
  const int64_t n = s[0];
  double *keep = states.get(2 * n + 2), *dstart = (double*)out[1], *dts_back = (double*)out[3];
  *(double*)out[0] = swing(n, in, keep);
  const double f = *(const double*)in[1], *dts = (const double*)in[2];
  double da = 1.0, ds = 0.0, df = 0.0;
  for (int64_t i = n; i-- > 0;) {
    const double angle = keep[2 * i], speed = keep[2 * i + 1], dt = dts[i];
    dts_back[i] = da * speed - ds * (std::sin(angle) + f * speed);
    df -= ds * dt * speed;
    const double before = da - ds * dt * std::cos(angle);
    ds = da * dt + ds * (1.0 - dt * f);
    da = before;
  }
  dstart[0] = da, dstart[1] = ds, *(double*)out[2] = df;
}
