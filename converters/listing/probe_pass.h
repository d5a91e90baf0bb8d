// The probe pass: reads every input once before planning, for the options that need its content.
//
//   std::atomic<uint64_t> probed = 0;
//   RunProbePass(source, {.level = ProbeLevel::kStructure}, io_pool, listing, probed);
//   listing.images[row].width;  listing.content_hash[row];
//
// What cannot be read or is no usable image becomes a skip of the listing. Rows with a skip have a
// zeroed image and hash.
//
// Lifetime: borrows for the call.
// Thread-safety: one caller; uses all threads of the pool.
// Errors: I/O errors that say nothing about an input; the listing then is not to be used.
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

// `probed` is raised with each row done; setting `stop` ends the pass early, the listing then is
// not to be used.
absl::Status RunProbePass(const SampleSource& source, const ProbeOptions& options, IoPool& pool,
                          Listing& listing, std::atomic<uint64_t>& probed,
                          const std::atomic<bool>* stop = nullptr);

// The reason under which an image of that verdict is skipped; the verdict is not kOk.
SkipReason SkipReasonOf(ProbeVerdict verdict);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_PROBE_PASS_H_
