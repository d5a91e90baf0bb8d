// Offered flags: what to add to the command so that an error does not come again. Libraries name
// the flags, the command line prints the whole command.
//
//   return OfferFlags(absl::InvalidArgumentError("..."), {{"--split-by", "dir"}});
//   for (const auto& words : OfferedFlags(status)) Print(command, words);
//
// Errors: none; a status without offers has none.
#ifndef SHARDPACK_CONVERTERS_LISTING_OFFERED_FLAGS_H_
#define SHARDPACK_CONVERTERS_LISTING_OFFERED_FLAGS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace shardpack {

using FlagWords = std::vector<std::string>;  // "--exclude", "/extra/"
// In place of flags: another verb, with the source and the output that were given.
inline constexpr std::string_view kOfferConvert = "convert";

absl::Status OfferFlags(absl::Status status, const std::vector<FlagWords>& offers);
std::vector<FlagWords> OfferedFlags(const absl::Status& status);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_OFFERED_FLAGS_H_
