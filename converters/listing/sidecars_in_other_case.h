// SidecarsInOtherCase: finds files that would be sidecars if the case of their extension matched:
// a.TXT when --fields has txt.
//
//   other_case.Look(sidecars, "cat", "a.TXT");   // for each ignored file
//   other_case.Warn(listing);                    // at most one line
#ifndef SHARDPACK_CONVERTERS_LISTING_SIDECARS_IN_OTHER_CASE_H_
#define SHARDPACK_CONVERTERS_LISTING_SIDECARS_IN_OTHER_CASE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "converters/listing/listing.h"
#include "converters/listing/sidecars.h"

namespace shardpack {

class SidecarsInOtherCase {
 public:
  void Look(std::span<const Sidecar> sidecars, std::string_view folder, std::string_view name);
  void Add(const SidecarsInOtherCase& later);
  void Warn(Listing& listing) const;

 private:
  uint64_t count_ = 0;
  std::string first_, offer_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_SIDECARS_IN_OTHER_CASE_H_
