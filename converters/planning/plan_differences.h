// OptionDifferences: what was asked for otherwise, a line an option: "--seed was 0, is 3".
//
//   for (const std::string& line : OptionDifferences(manifest.options, options.ToMap())) Say(line);
//
// Options that only go along with another one (the quality of images that nothing encodes) have
// their defaults where they are not written down, so that they are named only where they differ.
#ifndef SHARDPACK_CONVERTERS_PLANNING_PLAN_DIFFERENCES_H_
#define SHARDPACK_CONVERTERS_PLANNING_PLAN_DIFFERENCES_H_

#include <map>
#include <span>
#include <string>
#include <vector>

namespace shardpack {

// What an option counts as that nobody gave: name -> value, as PlanOptions::ToMap writes it down.
// Those that have no value then (a limit) are not in it.
std::map<std::string, std::string> DefaultOptions();

// Both as PlanOptions::ToMap writes them down.
std::vector<std::string> OptionDifferences(const std::map<std::string, std::string>& was,
                                           const std::map<std::string, std::string>& now);

// "the classes have another order (...): class 0 was cat, is dog"; "" where they are the same.
std::string ClassesDifference(std::span<const std::string> was, std::span<const std::string> now);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_PLAN_DIFFERENCES_H_
