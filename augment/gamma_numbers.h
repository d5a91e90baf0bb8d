// Gamma-distributed random numbers, by their logarithms: of which Beta and Dirichlet weights are.
//
//   const double a = LogGamma(alpha, random), b = LogGamma(alpha, random);
//   const double share = 1 / (1 + std::exp(b - a));   // Beta(alpha, alpha)
//
// Logarithms and roots are of a library, whose last bits differ: round what is made of them.
//
// Thread-safety: pure functions, but for what `random` draws.
// Errors: none; alpha is above 0.
#ifndef SHARDPACK_AUGMENT_GAMMA_NUMBERS_H_
#define SHARDPACK_AUGMENT_GAMMA_NUMBERS_H_

#include <cmath>

namespace shardpack {

// Marsaglia's polar method. `random.Unit()`: the next number in [0, 1).
template <typename Random>
double NormalNumber(Random& random) {
  for (;;) {
    const double u = 2 * random.Unit() - 1, v = 2 * random.Unit() - 1;
    const double s = u * u + v * v;
    if (s > 0 && s < 1) return u * std::sqrt(-2 * std::log(s) / s);
  }
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; below 1 by a power
// of a uniform number.
template <typename Random>
double LogGamma(double alpha, Random& random) {
  double boost = 0;
  if (alpha < 1) {
    boost = std::log(1 - random.Unit()) / alpha;
    alpha += 1;
  }
  const double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = NormalNumber(random), v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    const double u = 1 - random.Unit();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v) + boost;
  }
}

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_GAMMA_NUMBERS_H_
