// Hand tracking of ADBench in its simple form: a skinned mesh is posed by 26 angles and compared with
// measured points; errors, and their Jacobian by the 26.
//
// Sizes bones (2 + 4 for each finger, 22), vertices, points. Inputs theta[26] (turn 3, shift 3, and of each of
// five fingers the first joint's two angles and one for the next two joints), parents[bones] (integers, -1
// for none, else a bone before), relatives[bones][4][4], inverse_absolutes[bones][4][4],
// positions[vertices][4], weights[vertices][bones], correspondences[points] (integers),
// measured[points][3], mirrored[1] (integer). Outputs errors[points][3], jacobian[26][points][3].
//
// An angle moves the bones below its joint only, so its derivative is a short list of matrices, made
// once. Lanes are vertices: with w p of each bone in registers or near, a position is a sum of matrices times
// these, and so is each derivative. Only the vertices that are compared are posed, each once.
#include "vectors.h"

namespace {

constexpr int64_t L = Lanes<double>::count, ANGLES = 26, FINGERS = 5;

struct Matrix {
  double at[4][4];
};

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix out;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      double sum = 0.0;
      for (int k = 0; k < 4; ++k) sum += a.at[i][k] * b.at[k][j];
      out.at[i][j] = sum;
    }
  return out;
}

// A turn about x, then about z by `z`; its derivative by the angle `by` (0: x, 1: z) if that is not negative.
// There is no turn about y in the simple form.
Matrix turn(double x, double z, int by) {
  const double cx = by == 0 ? -std::sin(x) : std::cos(x), sx = by == 0 ? std::cos(x) : std::sin(x);
  const double cz = by == 1 ? -std::sin(z) : std::cos(z), sz = by == 1 ? std::cos(z) : std::sin(z);
  const double x1 = by == 0 ? 0.0 : 1.0, z1 = by == 1 ? 0.0 : 1.0;
  return {{{cz * x1, -sz * cx, sz * sx, 0}, {sz * x1, cz * cx, -cz * sx, 0}, {0, z1 * sx, z1 * cx, 0},
           {0, 0, 0, by < 0 ? 1.0 : 0.0}}};
}

// The rotation by a vector, and its derivative by each component; close to none it is the identity.
void rotation(const double* w, double r[3][3], double dr[3][3][3]) {
  const double a2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2], a = std::sqrt(a2);
  std::memset(dr, 0, 27 * sizeof(double));
  for (int i = 0; i < 9; ++i) r[i / 3][i % 3] = i % 4 ? 0.0 : 1.0;
  if (a < 0.0001) return;
  const double cosine = std::cos(a), s = std::sin(a) / a, c = (1.0 - cosine) / a2;
  const double ds = (cosine - s) / a2, dc = (s - 2.0 * c) / a2;
  const double cross[3][3] = {{0, -w[2], w[1]}, {w[2], 0, -w[0]}, {-w[1], w[0], 0}};
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k) {
      r[i][k] = (i == k ? cosine : 0.0) + s * cross[i][k] + c * w[i] * w[k];
      for (int j = 0; j < 3; ++j) {
        // Row i, column k of [e_j] is -1, 0 or 1.
        const double unit = (i - k + 3) % 3 == 1 && 3 - i - k == j ? 1.0 : (k - i + 3) % 3 == 1 && 3 - i - k == j ? -1.0 : 0.0;
        dr[j][i][k] = (i == k ? -s * w[j] : 0.0) + s * unit + ds * w[j] * cross[i][k] + dc * w[j] * w[i] * w[k] +
                      c * ((i == j ? w[k] : 0.0) + (k == j ? w[i] : 0.0));
      }
    }
}

struct Problem {
  int64_t bones, vertices, points;
  const double *theta, *positions, *weights, *measured;
  const int64_t *parents, *of;
  const Matrix *relatives, *inverses;
  bool mirrored;
  Problem(Sizes s, Inputs in)
      : bones(s[0]), vertices(s[1]), points(s[2]), theta((const double*)in[0]), positions((const double*)in[4]),
        weights((const double*)in[5]), measured((const double*)in[7]), parents((const int64_t*)in[1]),
        of((const int64_t*)in[6]), relatives((const Matrix*)in[2]), inverses((const Matrix*)in[3]),
        mirrored(*(const int64_t*)in[8] != 0) {}
};

// A bone's share in the derivative by one angle.
struct Share {
  int64_t bone;
  double by[3][4];
};

struct Work {
  Kept<Matrix> turned, absolute, derivative, skin;
  Kept<double> weights, positions, posed, columns;
  Kept<Share> shares;
  Kept<int64_t> column_of;
} work;

// The angle of a bone about x and about z: its index in theta, or -1.
void joint(int64_t bone, int64_t& x, int64_t& z) {
  x = z = -1;
  const int64_t finger = (bone - 2) / 4, place = (bone - 2) % 4;
  if (bone < 2 || finger >= FINGERS || place == 3) return;
  x = 6 + 4 * finger + (place ? place + 1 : 0);
  z = place ? -1 : x + 1;
}

// Poses the bones: skin = absolute * inverse, with the mirror.
void pose(const Problem& p) {
  Matrix *turned = work.turned.get(p.bones), *absolute = work.absolute.get(p.bones), *skin = work.skin.get(p.bones);
  for (int64_t b = 0; b < p.bones; ++b) {
    int64_t x, z;
    joint(b, x, z);
    turned[b] = x < 0 ? p.relatives[b] : p.relatives[b] * turn(p.theta[x], z < 0 ? 0.0 : p.theta[z], -1);
    absolute[b] = p.parents[b] < 0 ? turned[b] : absolute[p.parents[b]] * turned[b];
    skin[b] = absolute[b] * p.inverses[b];
    for (int k = 0; p.mirrored && k < 4; ++k) skin[b].at[0][k] = -skin[b].at[0][k];
  }
}

// The shares of all bones in the derivative by an angle; how many there are.
int64_t shares_of(const Problem& p, int64_t bone, int by, const double r[3][3], Share* out) {
  int64_t x, z, count = 0;
  joint(bone, x, z);
  Matrix* d = work.derivative.get(p.bones);
  bool moved[p.bones];
  for (int64_t b = bone; b < p.bones; ++b) {
    const int64_t up = p.parents[b];
    moved[b] = b == bone || (up >= bone && moved[up]);
    if (!moved[b]) continue;
    const Matrix own = b == bone ? p.relatives[b] * turn(p.theta[x], z < 0 ? 0.0 : p.theta[z], by) : work.turned.at[b];
    d[b] = b != bone ? d[up] * own : up < 0 ? own : work.absolute.at[up] * own;
    Matrix m = d[b] * p.inverses[b];
    Share& share = out[count++];
    share.bone = b;
    for (int i = 0; i < 3; ++i)
      for (int k = 0; k < 4; ++k)
        share.by[i][k] = (p.mirrored ? -r[i][0] : r[i][0]) * m.at[0][k] + r[i][1] * m.at[1][k] + r[i][2] * m.at[2][k];
  }
  return count;
}

// The vertices that are posed, as columns; a point's column stands in `column_of`.
int64_t gather(const Problem& p, int64_t& wide) {
  const bool each = p.points >= p.vertices;
  const int64_t count = each ? p.vertices : p.points;
  wide = round_up(count, L);
  double *w = work.weights.get(p.bones * wide), *x = work.positions.get(4 * wide);
  int64_t* column = work.column_of.get(p.points);
  for (int64_t i = 0; i < p.points; ++i) column[i] = each ? p.of[i] : i;
  for (int64_t i = 0; i < wide; ++i) {
    const int64_t v = each ? i : i < count ? p.of[i] : 0;
    for (int64_t b = 0; b < p.bones; ++b) w[b * wide + i] = i < count ? p.weights[v * p.bones + b] : 0.0;
    for (int64_t k = 0; k < 4; ++k) x[k * wide + i] = i < count ? p.positions[v * 4 + k] : 0.0;
  }
  return count;
}

// Positions [3][wide] before the turn of the whole, and, where there are shares, derivatives [20][3][wide].
void blend(const Problem& p, int64_t wide, double* posed, const Share* shares, const int64_t* counts, double* columns) {
  V wp[p.bones][4];
  for (int64_t i = 0; i < wide; i += L) {
    V sum[3] = {}, x[4];
    for (int k = 0; k < 4; ++k) x[k] = load(work.positions.at + k * wide + i);
    for (int64_t b = 0; b < p.bones; ++b) {
      const V w = load(work.weights.at + b * wide + i);
      const Matrix& m = work.skin.at[b];
      for (int k = 0; k < 4; ++k) {
        wp[b][k] = w * x[k];
        for (int s = 0; s < 3; ++s) sum[s] += m.at[s][k] * wp[b][k];
      }
    }
    for (int s = 0; s < 3; ++s) store(posed + s * wide + i, sum[s]);
    const Share* share = shares;
    for (int64_t j = 0; shares && j < ANGLES - 6; ++j) {
      V d[3] = {};
      for (const Share* end = share + counts[j]; share < end; ++share)
        for (int k = 0; k < 4; ++k)
          for (int s = 0; s < 3; ++s) d[s] += share->by[s][k] * wp[share->bone][k];
      for (int s = 0; s < 3; ++s) store(columns + (j * 3 + s) * wide + i, d[s]);
    }
  }
}

void errors(const Problem& p, int64_t wide, const double r[3][3], const double* posed, double* __restrict out) {
  for (int64_t i = 0; i < p.points; ++i) {
    const double* at = posed + work.column_of.at[i];
    for (int s = 0; s < 3; ++s)
      out[3 * i + s] = p.measured[3 * i + s] -
                       (r[s][0] * at[0] + r[s][1] * at[wide] + r[s][2] * at[2 * wide] + p.theta[3 + s]);
  }
}

}  // namespace

BASELINE void hand_primal(Sizes sizes, Inputs in, Outputs out) {
  const Problem p(sizes, in);
  double r[3][3], dr[3][3][3];
  int64_t wide;
  rotation(p.theta, r, dr);
  pose(p);
  gather(p, wide);
  double* posed = work.posed.get(3 * wide);
  blend(p, wide, posed, nullptr, nullptr, nullptr);
  errors(p, wide, r, posed, (double*)out[0]);
}

BASELINE void hand_gradient(Sizes sizes, Inputs in, Outputs out) {
  const Problem p(sizes, in);
  double r[3][3], dr[3][3][3];
  int64_t wide, counts[ANGLES - 6], total = 0;
  rotation(p.theta, r, dr);
  pose(p);
  gather(p, wide);
  Share* shares = work.shares.get((ANGLES - 6) * p.bones);
  for (int64_t b = 2; b < p.bones; ++b) {
    int64_t x, z;
    joint(b, x, z);
    if (x >= 0) total += counts[x - 6] = shares_of(p, b, 0, r, shares + total);
    if (z >= 0) total += counts[z - 6] = shares_of(p, b, 1, r, shares + total);
  }
  double *posed = work.posed.get(3 * wide), *columns = work.columns.get(3 * (ANGLES - 6) * wide);
  blend(p, wide, posed, shares, counts, columns);
  errors(p, wide, r, posed, (double*)out[0]);
  double* __restrict jacobian = (double*)out[1];
  for (int64_t j = 0; j < ANGLES; ++j)
    for (int64_t i = 0; i < p.points; ++i) {
      const int64_t c = work.column_of.at[i];
      const double *from = j < 6 ? posed + c : columns + (j - 6) * 3 * wide + c, x = from[0], y = from[wide], z = from[2 * wide];
      double* to = jacobian + (j * p.points + i) * 3;
      for (int s = 0; s < 3; ++s)
        to[s] = j < 3   ? -(dr[j][s][0] * x + dr[j][s][1] * y + dr[j][s][2] * z)
                : j < 6 ? (j - 3 == s ? -1.0 : 0.0)
                        : -(s == 0 ? x : s == 1 ? y : z);
    }
}
