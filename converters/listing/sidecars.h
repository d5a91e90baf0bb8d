// Sidecars: files that belong to an image and become further fields of its sample: a.json and a.txt
// beside a.jpg.
//
//   std::vector<Sidecar> sidecars = *ParseSidecars("json,txt,png:mask");
//   absl::Status paired = PairSidecars(sidecars, MissingPart::kSkip, listing);  // parts become fields
//   listing.fields;  listing.field_bytes[row * listing.fields.size() + f];
//
// A field is written for all samples or for none.
//
// Errors: InvalidArgument, naming the first image without its part, with MissingPart::kError.
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
  std::string suffix;  // what stands in place of the image's extension, without the dot
  std::string field;
};

// What becomes of a sample that lacks a part: it is skipped and listed; that is an error; the part
// is written for no sample; or for those that have it.
enum class MissingPart : uint8_t { kSkip, kError, kDrop, kKeep };
// As on the command line.
std::string_view MissingPartName(MissingPart missing);

// "ext" or "ext:field", with commas between.
absl::StatusOr<std::vector<Sidecar>> ParseSidecars(std::string_view text);

// Whether a field may have this name: lower case, no slash, not the image's own.
bool IsFieldName(std::string_view name);

// The name of a file up to its last dot.
std::string_view Stem(std::string_view name);

// The sidecar whose file this may be (the one with the longest suffix); nullopt for none.
std::optional<size_t> SidecarOf(std::span<const Sidecar> sidecars, std::string_view name);

// `listing` has a row for each image and each part, each folder's rows together. Rows of parts
// leave it; one that no image wants stays as a row with the skip `unpaired` (kSkip, kKeep), is an
// error, or is counted among `ignored` (kDrop).
absl::Status PairSidecars(std::span<const Sidecar> sidecars, MissingPart missing, Listing& listing);

// For each field the rows that lack it, of those that are not skipped.
std::vector<uint64_t> CountGaps(const Listing& listing);

// Takes these fields away from all rows; one a field.
void DropFields(const std::vector<bool>& drop, Listing& listing);

// Applies `missing` to a listing whose fields are filled but for some that are kNoPart; with kKeep
// those stay so.
absl::Status SettleMissingParts(MissingPart missing, Listing& listing);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_SIDECARS_H_
