// SampleSource: where samples come from: lists them once, then loads any of them, in any order,
// from any thread.
//
//   absl::StatusOr<Listing> listing = source.List();
//   LoadResult loaded = source.Load(*listing, row, arena);
//   if (const Skip* skip = std::get_if<Skip>(&loaded)) ...  else  Use(std::get<LoadedSample>(loaded).fields);
//
// Lifetime: what Load returns dies with arena.Reset().
// Thread-safety: List one caller; Load any thread at once, each with its own arena.
// Errors: List answers InvalidArgument for a source that is missing, empty or no source, and an I/O
// status when listing breaks off; a bad input is a Skip, never a Status, and a read that fails is
// never a Skip. Load never blocks on a FIFO.
#ifndef SHARDPACK_CONVERTERS_LISTING_SAMPLE_SOURCE_H_
#define SHARDPACK_CONVERTERS_LISTING_SAMPLE_SOURCE_H_

#include <cstdint>
#include <span>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/listing/arena.h"
#include "converters/listing/listing.h"
#include "converters/listing/skip.h"
#include "formats/core/sample.h"

namespace shardpack {

struct LoadedSample {
  std::span<const FieldView> fields;  // [0] = image; the span and the bytes lie in the arena
  // Of pixels without a header (ImageFormat::kRaw), which no probe can know; else unknown.
  ImageInfo image = {};
};
// A Status is no fact about the input (see InputFailure): the run ends with it.
using LoadResult = std::variant<LoadedSample, Skip, absl::Status>;

class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual absl::StatusOr<Listing> List() = 0;
  // Inputs found so far, counted while List runs, for progress.
  virtual uint64_t listed() const { return 0; }
  // The fields of that row. `listing` is the one that List returned, or an equal one read from a
  // plan.
  virtual LoadResult Load(const Listing& listing, uint64_t row, Arena& arena) const = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_SAMPLE_SOURCE_H_
