// SkipAnswers: the options that answer why inputs were left out, for a line behind their list.
//
//   std::string answers = SkipAnswers(skips);   // "unpaired: --missing-part drop ..."; "" for none
#ifndef SHARDPACK_CONVERTERS_LISTING_SKIP_ANSWERS_H_
#define SHARDPACK_CONVERTERS_LISTING_SKIP_ANSWERS_H_

#include <span>
#include <string>

#include "converters/listing/skip.h"

namespace shardpack {

std::string SkipAnswers(std::span<const Skip> skips);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_SKIP_ANSWERS_H_
