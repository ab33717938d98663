// Bundle adjustment as in programs/apps/ba.ks: reprojection errors, weight errors, and their Jacobian by
// the 11 numbers of a camera, the 3 of a point and the weight.
//
// Sizes cameras, points, p. Inputs cameras[][11], points[][3], weights[p], features[p][2], camera_of[p],
// point_of[p] (integers). Outputs errors[p][2], weight_errors[p], and of the gradient after these
// jacobian[p][2][15] and dweight[p].
//
// Sine, cosine and the derivative of the rotation by its vector belong to the camera, so they are made
// once for each camera and not for each observation. What stays is a product of a camera's
// matrices with the seen point, whose lanes are the parameters: one row of the Jacobian is two stores.
#include "vectors.h"

// The entries of a row of a Jacobian, whatever the machine's vectors are.
typedef double Eight __attribute__((vector_size(64)));
static inline void put(double* p, Eight v) { std::memcpy(p, &v, sizeof v); }

namespace {

// Of a camera: seen = R (x - centre), as its columns; and for each coordinate s of `seen` what x - centre
// is multiplied with to get [d seen_s / d rotation (3), d seen_s / d centre (3), seen_s, 0].
struct Camera {
  Eight by[3][3], constant[3];
  double r[3][3], centre[3], focal, u0, v0, k1, k2;
};

struct Work {
  Kept<Camera> cameras;
} work;

// R of the rotation vector, and dR[j] = its derivative by component j. With a = |w|, s = sin a / a and
// c = (1 - cos a) / a^2: R = cos a I + s [w] + c w w'. At a = 0 the program has R = I + [w].
void rotation(const double* w, double r[3][3], double dr[3][3][3]) {
  const double a2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2], a = std::sqrt(a2);
  const bool none = a2 == 0.0;
  const double cosine = std::cos(a), s = none ? 1.0 : std::sin(a) / a, c = none ? 0.0 : (1.0 - cosine) / a2;
  // ds = ds/da / a, dc = dc/da / a: the derivative by w[j] is that times w[j].
  const double ds = none ? 0.0 : (cosine - s) / a2, dc = none ? 0.0 : (s - 2.0 * c) / a2;
  const double cross[3][3] = {{0, -w[2], w[1]}, {w[2], 0, -w[0]}, {-w[1], w[0], 0}};
  const double unit[3][3][3] = {{{0, 0, 0}, {0, 0, -1}, {0, 1, 0}},
                                {{0, 0, 1}, {0, 0, 0}, {-1, 0, 0}},
                                {{0, -1, 0}, {1, 0, 0}, {0, 0, 0}}};
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k) {
      r[i][k] = (i == k ? cosine : 0.0) + s * cross[i][k] + c * w[i] * w[k];
      for (int j = 0; j < 3; ++j)
        dr[j][i][k] = (i == k && !none ? -s * w[j] : 0.0) + s * unit[j][i][k] + ds * w[j] * cross[i][k] +
                      dc * w[j] * w[i] * w[k] + c * ((i == j ? w[k] : 0.0) + (k == j ? w[i] : 0.0));
    }
}

const Camera* prepare(int64_t count, const double* from) {
  Camera* out = work.cameras.get(count);
  for (int64_t c = 0; c < count; ++c, from += 11) {
    Camera& camera = out[c];
    double dr[3][3][3];
    rotation(from, camera.r, dr);
    for (int s = 0; s < 3; ++s) {
      for (int k = 0; k < 3; ++k)
        camera.by[s][k] = Eight{dr[0][s][k], dr[1][s][k], dr[2][s][k], 0, 0, 0, camera.r[s][k], 0};
      camera.constant[s] = Eight{0, 0, 0, -camera.r[s][0], -camera.r[s][1], -camera.r[s][2], 0, 0};
      camera.centre[s] = from[3 + s];
    }
    camera.focal = from[6], camera.u0 = from[7], camera.v0 = from[8], camera.k1 = from[9], camera.k2 = from[10];
  }
  return out;
}

struct Problem {
  int64_t cameras, p;
  const double *points, *weights, *features;
  const int64_t *camera_of, *point_of;
  const Camera* all;
  Problem(Sizes s, Inputs in)
      : cameras(s[0]), p(s[2]), points((const double*)in[1]), weights((const double*)in[2]),
        features((const double*)in[3]), camera_of((const int64_t*)in[4]), point_of((const int64_t*)in[5]),
        all(prepare(s[0], (const double*)in[0])) {}
};

}  // namespace

BASELINE void ba_primal(Sizes sizes, Inputs in, Outputs out) {
  const Problem p(sizes, in);
  double *__restrict errors = (double*)out[0], *__restrict weight_errors = (double*)out[1];
  for (int64_t i = 0; i < p.p; ++i) {
    const Camera& c = p.all[p.camera_of[i]];
    const double *from = p.points + 3 * p.point_of[i], w = p.weights[i];
    const double x = from[0] - c.centre[0], y = from[1] - c.centre[1], z = from[2] - c.centre[2];
    const double a = c.r[0][0] * x + c.r[0][1] * y + c.r[0][2] * z;
    const double b = c.r[1][0] * x + c.r[1][1] * y + c.r[1][2] * z;
    const double inverse = 1.0 / (c.r[2][0] * x + c.r[2][1] * y + c.r[2][2] * z);
    const double u = a * inverse, v = b * inverse, q = u * u + v * v;
    const double f = c.focal * (1.0 + q * (c.k1 + c.k2 * q));
    errors[2 * i] = w * (f * u + c.u0 - p.features[2 * i]);
    errors[2 * i + 1] = w * (f * v + c.v0 - p.features[2 * i + 1]);
    weight_errors[i] = 1.0 - w * w;
  }
}

BASELINE void ba_gradient(Sizes sizes, Inputs in, Outputs out) {
  const Problem p(sizes, in);
  double *__restrict errors = (double*)out[0], *__restrict weight_errors = (double*)out[1];
  double *__restrict jacobian = (double*)out[2], *__restrict dweight = (double*)out[3];
  for (int64_t i = 0; i < p.p; ++i) {
    const Camera& c = p.all[p.camera_of[i]];
    const double *from = p.points + 3 * p.point_of[i], w = p.weights[i];
    const double x = from[0] - c.centre[0], y = from[1] - c.centre[1], z = from[2] - c.centre[2];
    Eight seen[3];
    for (int s = 0; s < 3; ++s) seen[s] = c.constant[s] + x * c.by[s][0] + y * c.by[s][1] + z * c.by[s][2];
    const double inverse = 1.0 / seen[2][6], u = seen[0][6] * inverse, v = seen[1][6] * inverse;
    const double q = u * u + v * v, radial = 1.0 + q * (c.k1 + c.k2 * q), f = c.focal * radial;
    // By u and v: d(radial u) = radial du + u dradial, dradial = slope (u du + v dv).
    const double slope = c.focal * 2.0 * (c.k1 + 2.0 * c.k2 * q), wi = w * inverse;
    const double uu = f + slope * u * u, uv = slope * u * v, vv = f + slope * v * v;
    const double pu = f * u + c.u0 - p.features[2 * i], pv = f * v + c.v0 - p.features[2 * i + 1];
    const Eight du = wi * (seen[0] - u * seen[2]), dv = wi * (seen[1] - v * seen[2]);
    Eight row[2] = {uu * du + uv * dv, uv * du + vv * dv};
    const double wf = w * c.focal, at[2] = {u, v}, error[2] = {pu, pv};
    for (int s = 0; s < 2; ++s) {
      double* j = jacobian + (2 * i + s) * 15;
      Eight first = row[s];
      // The point stands where the centre does, with the other sign.
      const Eight second = {s ? w : 0.0, wf * at[s] * q, wf * at[s] * q * q, -first[3], -first[4], -first[5], error[s], 0};
      first[6] = w * radial * at[s], first[7] = s ? 0.0 : w;
      put(j, first);
      std::memcpy(j + 8, &second, 7 * sizeof(double));
    }
    errors[2 * i] = w * pu, errors[2 * i + 1] = w * pv;
    weight_errors[i] = 1.0 - w * w, dweight[i] = -2.0 * w;
  }
}
