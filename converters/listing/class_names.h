// Class names that may be slips: "Cat" and "cat", "dog" and "dog ", which are told apart although
// they may be meant as one; " dog".
//
//   for (const std::string& line : DoubtfulClassNames(listing.classes)) Warn(line);
#ifndef SHARDPACK_CONVERTERS_LISTING_CLASS_NAMES_H_
#define SHARDPACK_CONVERTERS_LISTING_CLASS_NAMES_H_

#include <span>
#include <string>
#include <vector>

namespace shardpack {

// One line that names the first few, or nothing.
std::vector<std::string> DoubtfulClassNames(std::span<const std::string> classes);

// Of a name that is not among the classes, the first of them that it may be meant for, as in
// ` (there is "cat ")`; "" when there is none.
std::string AlikeClass(std::span<const std::string> classes, const std::string& name);

// "nan", "NULL", "None", "N/A", blanks: what programs write where there is no value.
bool StandsForNoValue(const std::string& text);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_CLASS_NAMES_H_
