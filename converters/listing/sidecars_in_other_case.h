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
#include <utility>

#include "converters/listing/listing.h"
#include "converters/listing/sidecars.h"

namespace shardpack {

class SidecarsInOtherCase {
 public:
  struct Facts {
    uint64_t count = 0;
    std::string first = {}, offer = {};
  };
  SidecarsInOtherCase() = default;
  explicit SidecarsInOtherCase(Facts facts) : facts_(std::move(facts)) {}
  const Facts& facts() const { return facts_; }

  void Look(std::span<const Sidecar> sidecars, std::string_view folder, std::string_view name);
  void Add(const SidecarsInOtherCase& later);
  void Warn(Listing& listing) const;

 private:
  Facts facts_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_SIDECARS_IN_OTHER_CASE_H_
