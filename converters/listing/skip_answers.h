// SkipText: an input that was left out, and the reason, for a message. SkipAnswers: the options
// that address those reasons, to print after the list of skips.
//
//   Say(SkipText("cat/7.jpg", skip));           // "cat/7.jpg: truncated (no EOI marker)"
//   std::string answers = SkipAnswers(skips);   // "unpaired: --missing-part drop ..."; "" for none
//   SkipAnswers(skips, true);   // the same for a build of a given plan, which takes none of them
#ifndef SHARDPACK_CONVERTERS_LISTING_SKIP_ANSWERS_H_
#define SHARDPACK_CONVERTERS_LISTING_SKIP_ANSWERS_H_

#include <span>
#include <string>
#include <string_view>

#include "converters/listing/skip.h"

namespace shardpack {

// Escaped for a terminal.
std::string SkipText(std::string_view path, const Skip& skip);

std::string SkipAnswers(std::span<const Skip> skips, bool plan_is_given = false);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_SKIP_ANSWERS_H_
