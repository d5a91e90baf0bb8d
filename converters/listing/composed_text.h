// MakeComposed: makes texts equal that differ only in their Unicode form, as names do that one file
// system writes composed ("é" as one character) and another one decomposed ("e" and an accent).
//
//   std::string name = "cafe\u0301";
//   MakeComposed(name);   // "café"
//
// Thread-safety: pure.
// Errors: none; bytes that are not UTF-8 stay as they are.
#ifndef SHARDPACK_CONVERTERS_LISTING_COMPOSED_TEXT_H_
#define SHARDPACK_CONVERTERS_LISTING_COMPOSED_TEXT_H_

#include <string>

namespace shardpack {

// To NFC. ASCII costs no allocation.
void MakeComposed(std::string& text);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_COMPOSED_TEXT_H_
