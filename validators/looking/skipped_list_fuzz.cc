// Parses arbitrary bytes as skipped.jsonl: every line is counted once, and names survive.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "validators/looking/html_writer.h"
#include "validators/looking/skipped_list.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shardpack;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const SkippedList list = ParseSkippedList(text);
  uint64_t sum = 0;
  for (const auto& [reason, count] : list.by_reason) sum += count;
  if (sum != list.count || list.first.size() > list.count) abort();
  for (const SkippedInput& input : list.first) {
    if (HtmlEscape(input.path).find_first_of("<>\"") != std::string_view::npos) abort();
  }
  return 0;
}
