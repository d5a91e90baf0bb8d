// SchemeOf: the scheme of a URL, which no file system can open; "" for a path.
//
//   SchemeOf("s3://bucket/photos")   // "s3"
//   SchemeOf("./s3://bucket")        // "": a path
//
// Lifetime: the result is a view of the argument.
#ifndef SHARDPACK_FORMATS_IO_URL_H_
#define SHARDPACK_FORMATS_IO_URL_H_

#include <string_view>

namespace shardpack {

// The scheme before "://" at the start of `text` (RFC 3986: a letter, then letters, digits, +, -
// and .); "" if there is none.
inline std::string_view SchemeOf(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const std::string_view scheme = text.substr(0, text.find("://"));
  if (scheme.empty() || scheme.size() == text.size() || !is_letter(scheme[0])) return "";
  for (const char c : scheme) {
    if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '+' && c != '-' && c != '.') return "";
  }
  return scheme;
}

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_URL_H_
