// Class names that may be typing errors: "Cat" and "cat", or "dog" and "dog ", which count as two
// classes although they may be meant as one; "café" composed and decomposed; " dog".
//
//   for (const std::string& line : DoubtfulClassNames(listing.classes)) Warn(line);
#ifndef SHARDPACK_CONVERTERS_LISTING_CLASS_NAMES_H_
#define SHARDPACK_CONVERTERS_LISTING_CLASS_NAMES_H_

#include <span>
#include <string>
#include <vector>

namespace shardpack {

// One line that lists the first few, or nothing.
std::vector<std::string> DoubtfulClassNames(std::span<const std::string> classes);

// For a name that is not a class, the first class that it may stand for, as in ` (there is "cat
// ")`; "" if there is none.
std::string AlikeClass(std::span<const std::string> classes, const std::string& name);

// "nan", "NULL", "None", "N/A", blanks: what programs write for a missing value.
bool StandsForNoValue(const std::string& text);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_CLASS_NAMES_H_
