// MadeFields: fields that are not files: a source makes them while it lists, and keeps their bytes.
//
//   MadeFields made({"txt", "json"});
//   made.Add("a caption");  made.AddMissing();      // for each row, each field in order
//   made.AppendTo(listing);                         // columns of sizes and places, and the digest
//   std::optional<Bytes> bytes = made.Get(place, size);
//
// Lifetime: Get returns views of this object.
// Thread-safety: const from any thread.
// Errors: Get returns nullopt for anything that was never added.
// Memory: all bytes, and 16 per field of a row.
#ifndef SHARDPACK_CONVERTERS_LISTING_MADE_FIELDS_H_
#define SHARDPACK_CONVERTERS_LISTING_MADE_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/listing/listing.h"
#include "formats/io/bytes.h"

namespace shardpack {

class MadeFields {
 public:
  explicit MadeFields(std::vector<std::string> names = {}) : names_(std::move(names)) {}

  bool empty() const { return names_.empty(); }
  void Add(std::string_view bytes);
  void AddMissing();

  // Adds them after the fields that the listing already has, which are files.
  void AppendTo(Listing& listing) const;

  std::optional<Bytes> Get(uint64_t place, uint64_t bytes) const;

 private:
  std::vector<std::string> names_;
  std::string bytes_;  // concatenated
  std::vector<uint64_t> places_,
      sizes_;  // rows x names; kNoPart for a missing field
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_MADE_FIELDS_H_
