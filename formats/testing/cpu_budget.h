// CpuBudget: a bound on the processor time of a piece of work, for tests of hostile input. Other
// load on the machine does not count.
//
//   const CpuBudget budget(2.0);
//   Inspect(bomb);
//   EXPECT_LT(budget.used(), budget.seconds());
//
// Thread-safety: all threads of the process count.
// Units: seconds; with a sanitizer the budget is larger.
#ifndef SHARDPACK_FORMATS_TESTING_CPU_BUDGET_H_
#define SHARDPACK_FORMATS_TESTING_CPU_BUDGET_H_

#include <ctime>

namespace shardpack::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr double kSanitizerSlowdown = 20;
#else
inline constexpr double kSanitizerSlowdown = 1;
#endif

class CpuBudget {
 public:
  explicit CpuBudget(double seconds) : seconds_(seconds * kSanitizerSlowdown) {}
  double seconds() const { return seconds_; }
  double used() const { return Now() - begin_; }

 private:
  static double Now() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  double seconds_, begin_ = Now();
};

}  // namespace shardpack::testing

#endif  // SHARDPACK_FORMATS_TESTING_CPU_BUDGET_H_
