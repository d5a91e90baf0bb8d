// OptionDifferences: options that changed, one line per option: "--seed was 0, is 3".
//
//   for (const std::string& line : OptionDifferences(manifest.options, options.ToMap())) Say(line);
//
// An option that matters only with another one (the quality of images that are not encoded) counts
// as its default if it is not recorded, so it is listed only if it differs from that.
#ifndef SHARDPACK_CONVERTERS_PLANNING_PLAN_DIFFERENCES_H_
#define SHARDPACK_CONVERTERS_PLANNING_PLAN_DIFFERENCES_H_

#include <map>
#include <span>
#include <string>
#include <vector>

namespace shardpack {

// The value that stands for an option that was not given: name -> value, in the form of
// PlanOptions::ToMap. Options that then have no value (a limit) are not included.
std::map<std::string, std::string> DefaultOptions();

// Both in the form of PlanOptions::ToMap.
std::vector<std::string> OptionDifferences(const std::map<std::string, std::string>& was,
                                           const std::map<std::string, std::string>& now);

// "the classes have another order (...): class 0 was cat, is dog"; "" if they are equal.
std::string ClassesDifference(std::span<const std::string> was, std::span<const std::string> now);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_PLAN_DIFFERENCES_H_
