// FolderLook: samples whose source path contradicts their class: below the folder of another
// class, or deeper than the other samples of theirs.
//
//   const FolderLook look(dataset.classes());
//   FolderCounts counts = look.Count(index);          // of each shard
//   counts.Add(look.Count(other));
//   look.AddNotes(counts, samples, stats.notes);         // of each class
//
// Where a sample has no source path, its key is taken for it.
//
// Lifetime: borrows the names of the classes.
// Thread-safety: const, any thread.
#ifndef SHARDPACK_VALIDATORS_LOOKING_FOLDER_LOOK_H_
#define SHARDPACK_VALIDATORS_LOOKING_FOLDER_LOOK_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "formats/core/shard_index.h"
#include "validators/looking/stats_notes.h"

namespace shardpack {

struct FolderCounts {
  struct OfClass {
    uint64_t direct = 0;  // samples right in the folder of their class
    uint64_t deeper = 0;  // in a folder below it that is called like no class
    std::string first;    // the first of these folders by name
  };
  std::map<std::pair<int64_t, uint32_t>, uint64_t> misplaced;  // label, and class of the folder
  std::map<int64_t, OfClass> classes;                          // by label

  void Add(const FolderCounts& other);
};

class FolderLook {
 public:
  explicit FolderLook(std::span<const std::string> classes);

  FolderCounts Count(const ShardIndex& index) const;
  // `samples`: of each class.
  void AddNotes(const FolderCounts& counts, std::span<const uint64_t> samples,
                std::vector<StatsNote>& notes) const;

 private:
  // What the folders of a path say, for the classes that occur among them.
  struct Path {
    std::vector<uint32_t> classes;  // ascending
    // Of the last folder that is called like a class: its class, and the folder in it.
    uint32_t innermost = 0;
    std::string_view below;
  };
  Path Read(std::string_view folder) const;

  const std::span<const std::string> classes_;
  absl::flat_hash_map<absl::string_view, uint32_t> numbers_;
};

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_FOLDER_LOOK_H_
