// Parses any bytes as a list of each kind: the result is an error with a position, or rows whose
// paths and labels are not empty.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "converters/sources/list_lines.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shardpack;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const ListKind kind : {ListKind::kLst, ListKind::kText, ListKind::kPaths, ListKind::kCsv,
                              ListKind::kTsv, ListKind::kJsonl}) {
    for (const bool by_number : {false, true}) {
      uint64_t line = 0;
      ListOptions options{.kind = kind};
      if (by_number) options.path = "0";
      const absl::Status parsed = ParseList(text, options, "list", [&](const ListRow& row) {
        if (row.line <= line || row.path.empty() || (row.label && row.label->empty())) abort();
        if (row.path.find('\0') != std::string_view::npos) abort();
        line = row.line;
        return absl::OkStatus();
      });
      if (!parsed.ok() && std::string(parsed.message()).rfind("list:", 0) != 0) abort();
    }
  }
  return 0;
}
