// Offered flags: flags that, added to the command, avoid an error. Libraries attach the flags to
// the status; the command line prints the whole command.
//
//   return OfferFlags(absl::InvalidArgumentError("..."), {{"--split-by", "dir"}});
//   for (const auto& words : OfferedFlags(status)) Print(command, words);
//
// A status without offers gives an empty list.
#ifndef SHARDPACK_CONVERTERS_LISTING_OFFERED_FLAGS_H_
#define SHARDPACK_CONVERTERS_LISTING_OFFERED_FLAGS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace shardpack {

using FlagWords = std::vector<std::string>;  // "--exclude", "/extra/"
// Instead of flags: another verb, with the given source and output.
inline constexpr std::string_view kOfferConvert = "convert";

absl::Status OfferFlags(absl::Status status, const std::vector<FlagWords>& offers);
std::vector<FlagWords> OfferedFlags(const absl::Status& status);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_OFFERED_FLAGS_H_
