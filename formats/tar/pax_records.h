// The records of a pax extended header ("25 path=cat/long name.jpg\n"): those that move a member
// are read, path is written.
//
//   PaxOverrides next;
//   if (!ParsePaxRecords(body, next)) ...                 // malformed
//   EncodePaxPath("cat/1.jpg", block);                    // "18 path=cat/1.jpg\n"
//
// Lifetime: PaxOverrides owns its path and keeps its memory over Clear.
// Errors: false.
// Units: bytes. Source: POSIX.1-2017, pax, "pax Extended Header".
#ifndef SHARDPACK_FORMATS_TAR_PAX_RECORDS_H_
#define SHARDPACK_FORMATS_TAR_PAX_RECORDS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/io/bytes.h"

namespace shardpack {

// What the records of a header say about a member. The last record of a name wins; an empty value
// takes it back.
struct PaxOverrides {
  bool has_path = false, has_size = false;
  bool sparse = false;  // a GNU.sparse.* record
  std::string path;
  uint64_t size_bytes = 0;

  void Clear() { has_path = has_size = sparse = false; }
};

// Applies the records to `overrides`. False when they are malformed; those before the fault are
// applied.
bool ParsePaxRecords(Bytes body, PaxOverrides& overrides);

// The length of a path record, its own length field included.
size_t PaxPathBytes(size_t path_bytes);
// Writes PaxPathBytes(path.size()) bytes.
void EncodePaxPath(std::string_view path, std::byte* out);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TAR_PAX_RECORDS_H_
