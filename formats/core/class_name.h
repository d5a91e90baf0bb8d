// ClassName: the name of a label's class.
//
//   ClassName(manifest.classes, 1);   // "dog"
//
// Thread-safety: pure.
#ifndef SHARDPACK_FORMATS_CORE_CLASS_NAME_H_
#define SHARDPACK_FORMATS_CORE_CLASS_NAME_H_

#include <cstdint>
#include <span>
#include <string>

namespace shardpack {

// "" for no label; the number itself if the class has no name.
inline std::string ClassName(std::span<const std::string> classes, int64_t label) {
  if (label < 0) return "";
  const auto place = static_cast<uint64_t>(label);
  return place < classes.size() ? classes[place] : std::to_string(label);
}

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_CLASS_NAME_H_
