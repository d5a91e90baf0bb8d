// The records of a pax extended header ("25 path=cat/long name.jpg\n"): reads those that affect a
// member's name or position, writes path.
//
//   PaxOverrides next;
//   if (!ParsePaxRecords(body, next)) ...                 // malformed
//   EncodePaxPath("cat/1.jpg", block);                    // "18 path=cat/1.jpg\n"
//
// Lifetime: PaxOverrides owns its path and keeps its memory across Clear.
// Errors: false.
// Units: bytes. Source: POSIX.1-2017, pax, "pax Extended Header".
#ifndef SHARDPACK_FORMATS_TAR_PAX_RECORDS_H_
#define SHARDPACK_FORMATS_TAR_PAX_RECORDS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/io/bytes.h"

namespace shardpack {

// What a header's records say about a member. The last record of a name wins; an empty value
// cancels it.
struct PaxOverrides {
  bool has_path = false, has_size = false;
  bool sparse = false;  // a GNU.sparse.* record
  std::string path;
  uint64_t size_bytes = 0;

  void Clear() { has_path = has_size = sparse = false; }
};

// Applies the records to `overrides`. False if they are malformed; the records before the fault are
// applied.
bool ParsePaxRecords(Bytes body, PaxOverrides& overrides);

// The length of a path record, including its own length field.
size_t PaxPathBytes(size_t path_bytes);
// Writes PaxPathBytes(path.size()) bytes.
void EncodePaxPath(std::string_view path, std::byte* out);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TAR_PAX_RECORDS_H_
