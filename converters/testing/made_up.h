// Made-up listings and a format without bytes, for tests of what is decided before anything is
// read.
//
//   Listing listing = MakeListing({"cat/1.jpg", "dog/1.jpg"});   // 1000 bytes each
//   Plan plan = *Plan::Make(MakeListing(40), PlanOptions{}, PlainFormat());
//   Plan again = *Plan::FromBytes(plan.ToBytes(), &FindMadeUpFormat);
//
// Lifetime: formats have static storage.
#ifndef SHARDPACK_CONVERTERS_TESTING_MADE_UP_H_
#define SHARDPACK_CONVERTERS_TESTING_MADE_UP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "converters/listing/listing.h"
#include "formats/core/format.h"

namespace shardpack::testing {

// As a source would list these files, in any order.
Listing MakeListing(std::vector<std::string> paths, uint64_t bytes = 1000);
// `files` of different sizes (1 to 2,000 bytes, some 20,000) in four classes.
Listing MakeListing(uint64_t files);

// A shard has 100 bytes and a record 10 more than its key and its fields; keys of at most 60 bytes.
const Format& PlainFormat();
// The same, in the order of keys.
const Format& KeyOrderedFormat();
const Format* FindMadeUpFormat(std::string_view name);

}  // namespace shardpack::testing

#endif  // SHARDPACK_CONVERTERS_TESTING_MADE_UP_H_
