// The probe pass: reads every input once before planning, for the options that need its content.
//
//   std::atomic<uint64_t> probed = 0;
//   RunProbePass(source, {.level = ProbeLevel::kStructure}, io_pool, listing, probed);
//   listing.images[row].width;  listing.content_hash[row];
//
// An input that cannot be read or is not a usable image becomes a skip of the listing. Rows with a
// skip have a zeroed image and hash.
//
// Lifetime: borrows for the call.
// Thread-safety: one caller; uses all threads of the pool.
// Errors: I/O errors that say nothing about an input; do not use the listing then.
#ifndef SHARDPACK_CONVERTERS_LISTING_PROBE_PASS_H_
#define SHARDPACK_CONVERTERS_LISTING_PROBE_PASS_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "converters/listing/listing.h"
#include "converters/listing/sample_source.h"
#include "converters/threads/io_pool.h"
#include "images/probe/probe.h"

namespace shardpack {

// Increments `probed` for each finished row; setting `stop` ends the pass early. Do not use the
// listing then.
absl::Status RunProbePass(const SampleSource& source, const ProbeOptions& options, IoPool& pool,
                          Listing& listing, std::atomic<uint64_t>& probed,
                          const std::atomic<bool>* stop = nullptr);

// The reason to skip an image with that verdict, which is not kOk.
SkipReason SkipReasonOf(ProbeVerdict verdict);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_PROBE_PASS_H_
