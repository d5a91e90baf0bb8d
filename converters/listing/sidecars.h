// Sidecars: files beside an image that become further fields of its sample: a.json and a.txt beside
// a.jpg.
//
//   std::vector<Sidecar> sidecars = *ParseSidecars("json,txt,png:mask");
//   absl::Status paired = PairSidecars(sidecars, MissingPart::kSkip, listing);  // makes fields
//   listing.fields;  listing.field_bytes[row * listing.fields.size() + f];
//
// A field is written for all samples or for none, except with MissingPart::kKeep.
//
// Errors: InvalidArgument, naming the first image that lacks a part, with MissingPart::kError.
#ifndef SHARDPACK_CONVERTERS_LISTING_SIDECARS_H_
#define SHARDPACK_CONVERTERS_LISTING_SIDECARS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/listing/listing.h"

namespace shardpack {

struct Sidecar {
  std::string suffix;  // replaces the image's extension, without the dot
  std::string field;
};

// What to do with a sample that lacks a part: skip and list it; fail; write the part for no sample;
// or write it for the samples that have it.
enum class MissingPart : uint8_t { kSkip, kError, kDrop, kKeep };
// The name on the command line.
std::string_view MissingPartName(MissingPart missing);

// "ext" or "ext:field", separated by commas.
absl::StatusOr<std::vector<Sidecar>> ParseSidecars(std::string_view text);

// Whether a field may have this name: lower case, without a slash, not the name of the image field.
bool IsFieldName(std::string_view name);

// The name of a file up to its last dot.
std::string_view Stem(std::string_view name);

// The sidecar that this file may belong to (the one with the longest suffix); nullopt if none.
std::optional<size_t> SidecarOf(std::span<const Sidecar> sidecars, std::string_view name);

// `listing` has a row for each image and each part, with each folder's rows together. Rows of parts
// are removed; a part without an image stays as a row with the skip `unpaired` (kSkip, kKeep), is
// an error, or is counted in `ignored` (kDrop).
absl::Status PairSidecars(std::span<const Sidecar> sidecars, MissingPart missing, Listing& listing);

// Per field, the number of rows without it, not counting skipped rows.
std::vector<uint64_t> CountGaps(const Listing& listing);

// Removes fields from all rows; `drop` has one value per field.
void DropFields(const std::vector<bool>& drop, Listing& listing);

// Applies `missing` to a listing whose fields are filled, with kNoPart for missing ones; kKeep
// leaves those as they are.
absl::Status SettleMissingParts(MissingPart missing, Listing& listing);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_SIDECARS_H_
