#include "formats/tar/pax_records.h"

#include <charconv>
#include <cstring>

namespace shardpack {
namespace {

constexpr std::string_view kPathAssignment = " path=";

// Parses a decimal number below 2^62, more than any file's size.
bool ParseDecimal(std::string_view text, uint64_t& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && !text.empty() && value >> 62 == 0;
}

bool Apply(std::string_view keyword, std::string_view value, PaxOverrides& overrides) {
  if (keyword == "path") {
    overrides.has_path = !value.empty();
    overrides.path.assign(value);
  } else if (keyword == "size") {
    overrides.has_size = !value.empty();
    return value.empty() || ParseDecimal(value, overrides.size_bytes);
  } else if (keyword.starts_with("GNU.sparse.")) {
    overrides.sparse = true;
  }
  return true;
}

size_t DecimalDigits(size_t value) {
  size_t digits = 1;
  for (; value >= 10; value /= 10) ++digits;
  return digits;
}

}  // namespace

bool ParsePaxRecords(Bytes body, PaxOverrides& overrides) {
  std::string_view rest = AsText(body);
  while (!rest.empty()) {
    const size_t space = rest.substr(0, 20).find(' ');
    uint64_t length = 0;
    if (space == rest.npos || !ParseDecimal(rest.substr(0, space), length)) return false;
    // At least "5 a=\n", and within the body.
    if (length > rest.size() || length < space + 4 || rest[length - 1] != '\n') return false;
    const std::string_view record = rest.substr(space + 1, length - space - 2);
    const size_t equals = record.find('=');
    if (equals == record.npos || equals == 0) return false;
    if (!Apply(record.substr(0, equals), record.substr(equals + 1), overrides)) {
      overrides.has_size = false;
      return false;
    }
    rest.remove_prefix(length);
  }
  return true;
}

size_t PaxPathBytes(size_t path_bytes) {
  const size_t bare = kPathAssignment.size() + path_bytes + 1;
  size_t total = bare + DecimalDigits(bare);
  // The length counts its own digits, which can add one.
  if (bare + DecimalDigits(total) != total) total = bare + DecimalDigits(total);
  return total;
}

void EncodePaxPath(std::string_view path, std::byte* out) {
  char* at = reinterpret_cast<char*>(out);
  const size_t total = PaxPathBytes(path.size());
  at = std::to_chars(at, at + 20, total).ptr;
  std::memcpy(at, kPathAssignment.data(), kPathAssignment.size());
  at += kPathAssignment.size();
  std::memcpy(at, path.data(), path.size());
  at[path.size()] = '\n';
}

}  // namespace shardpack
