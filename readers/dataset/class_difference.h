// FirstClassDifference: describes the first difference between two lists of classes, for messages:
// "class 0 is cat in a and bird in b".
//
//   FirstClassDifference(was, " in a", now, " in b");
#ifndef SHARDPACK_READERS_DATASET_CLASS_DIFFERENCE_H_
#define SHARDPACK_READERS_DATASET_CLASS_DIFFERENCE_H_

#include <span>
#include <string>

namespace shardpack {

std::string FirstClassDifference(std::span<const std::string> was, const std::string& where_was,
                                 std::span<const std::string> now, const std::string& where_now);

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_CLASS_DIFFERENCE_H_
