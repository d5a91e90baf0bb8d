// OptionOf: the value of an option that a dataset was packed with, from its manifest; "" if absent.
#ifndef SHARDPACK_CONVERTERS_PLANNING_MANIFEST_OPTION_H_
#define SHARDPACK_CONVERTERS_PLANNING_MANIFEST_OPTION_H_

#include <string>

#include "formats/core/manifest.h"

namespace shardpack {

inline std::string OptionOf(const Manifest& manifest, const std::string& name) {
  const auto found = manifest.options.find(name);
  return found == manifest.options.end() ? "" : found->second;
}

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_MANIFEST_OPTION_H_
