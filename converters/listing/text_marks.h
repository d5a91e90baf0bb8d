// The marks that editors put at the beginning of a text, in lists that users write.
//
//   if (BeginsWithUtf16Mark(text)) return Refused();
//   text = WithoutByteOrderMark(text);
//
// Lifetime: what is returned is a part of the text.
// Thread-safety: pure.
#ifndef SHARDPACK_CONVERTERS_LISTING_TEXT_MARKS_H_
#define SHARDPACK_CONVERTERS_LISTING_TEXT_MARKS_H_

#include <string_view>

namespace shardpack {

// That of UTF-8.
inline std::string_view WithoutByteOrderMark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

// Whether it begins with the mark of UTF-16, in either order.
inline bool BeginsWithUtf16Mark(std::string_view text) {
  return text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF");
}

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_TEXT_MARKS_H_
