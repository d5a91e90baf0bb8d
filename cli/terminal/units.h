// Units: parses sizes, shares and durations as people write them, and formats numbers for people.
//
//   absl::StatusOr<uint64_t> size = ParseSize("256MB");         // 256'000'000
//   absl::StatusOr<double> share = ParseShare("1%");            // 0.01
//   std::string text = FormatBytes(52'430'000);                 // "52.4 MB"
// Errors: InvalidArgument with the accepted forms; the caller adds the flag's name.
// Units: bytes, seconds; k, M, G, T count in thousands, Ki, Mi, Gi, Ti in 1024s.
#ifndef SHARDPACK_CLI_TERMINAL_UNITS_H_
#define SHARDPACK_CLI_TERMINAL_UNITS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace shardpack::cli {

absl::StatusOr<uint64_t> ParseCount(std::string_view text);  // 0 and up; also "10_000" and "10,000"
absl::StatusOr<uint64_t> ParseSize(std::string_view text);
absl::StatusOr<double> ParseNumber(std::string_view text);    // finite, 0 and up
absl::StatusOr<double> ParseShare(std::string_view text);     // "1%" or "0.01"; 0..1, no bare "1"
absl::StatusOr<double> ParseDuration(std::string_view text);  // "90", "90s", "5m", "1h"; seconds
// Shards "a-b", both included, a <= b, digits only; a single "a" means a-a. Returns the first one
// and the one after the last. Numbers beyond 32 bits, which no dataset has, become the largest of
// those.
absl::StatusOr<std::pair<size_t, size_t>> ParseShardRange(std::string_view text);
// "train=0.9,val=0.1": names of [A-Za-z0-9._-], each once; shares above 0 that add up to 1.
absl::StatusOr<std::vector<std::pair<std::string, double>>> ParseSplits(std::string_view text);

// Appends the nonempty parts of `text` between the marks.
void SplitAt(std::string_view text, char mark, std::vector<std::string>* parts);

std::string FormatCount(uint64_t count);     // "1,234,567"
std::string FormatBytes(uint64_t bytes);     // "512 B", "1.23 MB"
std::string FormatDuration(double seconds);  // "0.42 s", "3:07", "1:02:03"
std::string FormatClock(double seconds);     // "0:00", "3:07", "1:02:03"
std::string FormatNumber(double number);     // three significant digits, no exponent
// "1 shard", "2 shards", "2 classes".
std::string Counted(uint64_t count, std::string_view one, std::string_view many);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_TERMINAL_UNITS_H_
