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
    if (++facts_.count == 1 || path < facts_.first) {
      facts_.first = path;
      facts_.offer =
          absl::StrCat(std::string(name.substr(name.size() - bytes)), ":", sidecar.field);
    }
    return;
  }
}

void SidecarsInOtherCase::Add(const SidecarsInOtherCase& later) {
  if (later.facts_.count > 0 && (facts_.count == 0 || later.facts_.first < facts_.first)) {
    facts_.first = later.facts_.first;
    facts_.offer = later.facts_.offer;
  }
  facts_.count += later.facts_.count;
}

void SidecarsInOtherCase::Warn(Listing& listing) const {
  if (facts_.count == 0) return;
  listing.warnings.push_back(absl::StrCat(
      facts_.count == 1 ? "" : absl::StrCat(facts_.count, " files, the first of them "),
      EscapeForTerminal(facts_.first), facts_.count == 1 ? " is" : ", are",
      " not taken, being written in another case than --fields has; where all are, --fields ",
      EscapeForTerminal(facts_.offer), " takes them, else rename them"));
}

}  // namespace shardpack
