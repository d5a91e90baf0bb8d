// SampleSource: an interface to samples: lists them once, then loads any of them, in any order,
// from any thread.
//
//   absl::StatusOr<Listing> listing = source.List();
//   LoadResult loaded = source.Load(*listing, row, arena);
//   if (const Skip* skip = std::get_if<Skip>(&loaded)) ...
//   else Use(std::get<LoadedSample>(loaded).fields);
//
// Lifetime: what Load returns is valid until arena.Reset().
// Thread-safety: List one caller; Load from any thread, each with its own arena.
// Errors: List returns InvalidArgument for a source that is missing, empty or unsuitable, and an
// I/O status when listing fails; a bad input is a Skip, never a Status, and a failed read is never
// a Skip. Load never blocks on a FIFO.
#ifndef SHARDPACK_CONVERTERS_LISTING_SAMPLE_SOURCE_H_
#define SHARDPACK_CONVERTERS_LISTING_SAMPLE_SOURCE_H_

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/listing/arena.h"
#include "converters/listing/listing.h"
#include "converters/listing/skip.h"
#include "formats/core/image_info.h"
#include "formats/core/sample.h"
#include "images/probe/probe.h"

namespace shardpack {

struct LoadedSample {
  std::span<const FieldView> fields;  // [0] = image; the span and the bytes are in the arena
  // For pixels without a header (ImageFormat::kRaw), which cannot be probed, and where `probed` is
  // set; else unknown.
  ImageInfo image = {};
  // XXH3-64 of each field if the source has verified its bytes; else empty.
  std::span<const uint64_t> hashes = {};
  // The options of an earlier probe of exactly this image, which found it usable and gave `image`;
  // nullptr if there was none. Lives as long as the source.
  const ProbeOptions* probed = nullptr;
};
// A Status says nothing about the input (see InputFailure): it ends the run.
using LoadResult = std::variant<LoadedSample, Skip, absl::Status>;

class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual absl::StatusOr<Listing> List() = 0;
  // Number of inputs found so far while List runs, for progress.
  virtual uint64_t listed() const { return 0; }
  // The fields of a row. `listing` is the one that List returned, or an equal one read from a plan.
  virtual LoadResult Load(const Listing& listing, uint64_t row, Arena& arena) const = 0;
  // Appends what Load would return for each of the rows, up to the first Status. Sources that can
  // read neighbours together do so.
  virtual void LoadRows(const Listing& listing, std::span<const uint32_t> rows, Arena& arena,
                        std::vector<LoadResult>& results) const {
    for (const uint32_t row : rows) {
      results.push_back(Load(listing, row, arena));
      if (std::holds_alternative<absl::Status>(results.back())) return;
    }
  }
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_SAMPLE_SOURCE_H_
