#include "converters/listing/sidecars_in_other_case.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/io/file.h"

namespace shardpack {

void SidecarsInOtherCase::Look(std::span<const Sidecar> sidecars, std::string_view folder,
                               std::string_view name) {
  for (const Sidecar& sidecar : sidecars) {
    const size_t bytes = sidecar.suffix.size();
    if (name.size() <= bytes + 1 || name[name.size() - bytes - 1] != '.' ||
        !absl::EqualsIgnoreCase(std::string(name.substr(name.size() - bytes)), sidecar.suffix))
      continue;
    const std::string path =
        absl::StrCat(std::string(folder), folder.empty() ? "" : "/", std::string(name));
    if (++count_ == 1 || path < first_) {
      first_ = path;
      offer_ = absl::StrCat(std::string(name.substr(name.size() - bytes)), ":", sidecar.field);
    }
    return;
  }
}

void SidecarsInOtherCase::Add(const SidecarsInOtherCase& later) {
  if (later.count_ > 0 && (count_ == 0 || later.first_ < first_)) {
    first_ = later.first_;
    offer_ = later.offer_;
  }
  count_ += later.count_;
}

void SidecarsInOtherCase::Warn(Listing& listing) const {
  if (count_ == 0) return;
  listing.warnings.push_back(absl::StrCat(
      count_ == 1 ? "" : absl::StrCat(count_, " files, the first of them "),
      EscapeForTerminal(first_), count_ == 1 ? " is" : ", are",
      " not taken, being written in another case than --fields has; where all are, --fields ",
      EscapeForTerminal(offer_), " takes them, else rename them"));
}

}  // namespace shardpack
