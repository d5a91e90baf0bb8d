#include "cli/terminal/exit_code.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <utility>
#include <vector>

namespace shardpack::cli {
namespace {

TEST(ExitCode, OfEachStatus) {
  const std::pair<absl::StatusCode, int> kWanted[] = {
      {absl::StatusCode::kOk, 0},
      {absl::StatusCode::kInvalidArgument, 2},
      {absl::StatusCode::kDataLoss, 4},
      {absl::StatusCode::kFailedPrecondition, 5},
      {absl::StatusCode::kAlreadyExists, 5},
      {absl::StatusCode::kAborted, 7},
      {absl::StatusCode::kResourceExhausted, 6},
      {absl::StatusCode::kUnavailable, 6},
      {absl::StatusCode::kNotFound, 6},
      {absl::StatusCode::kPermissionDenied, 6},
      {absl::StatusCode::kOutOfRange, 6},
      {absl::StatusCode::kInternal, 1},
      {absl::StatusCode::kUnknown, 1},
      {absl::StatusCode::kUnimplemented, 2},
  };
  for (const auto& [code, wanted] : kWanted) {
    EXPECT_EQ(static_cast<int>(ExitCodeOf(absl::Status(code, "x"), 0)), wanted)
        << absl::StatusCodeToString(code);
  }
}

TEST(ExitCode, ACancelledRunIsNamedAfterItsSignal) {
  EXPECT_EQ(ExitCodeOf(absl::CancelledError(), SIGINT), ExitCode::kInterrupted);
  EXPECT_EQ(ExitCodeOf(absl::CancelledError(), SIGTERM), ExitCode::kTerminated);
  EXPECT_EQ(ExitCodeOf(absl::CancelledError(), SIGHUP), ExitCode::kHungUp);
  EXPECT_EQ(ExitCodeOf(absl::CancelledError(), 0), ExitCode::kInternal);
}

TEST(ExitCode, TheGravestWins) {
  // signal > 1 > 4 > 6 > 5 > 7 > 2 > 3 > 8 > 0
  const int order[] = {130, 143, 129, 1, 4, 6, 5, 7, 2, 3, 8, 0};
  for (size_t i = 0; i < std::size(order); ++i) {
    for (size_t j = i; j < std::size(order); ++j) {
      const auto a = static_cast<ExitCode>(order[i]), b = static_cast<ExitCode>(order[j]);
      EXPECT_EQ(Worse(a, b), a);
      EXPECT_EQ(Worse(b, a), a);
    }
  }
}

TEST(ExitCode, TheTableIsWhole) {
  std::vector<int> codes;
  for (const ExitCodeSpec& spec : AllExitCodes()) {
    codes.push_back(static_cast<int>(spec.code));
    EXPECT_FALSE(spec.brief.empty());
    EXPECT_FALSE(spec.meaning.empty());
  }
  EXPECT_EQ(codes, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 129, 130, 143}));
}

}  // namespace
}  // namespace shardpack::cli
