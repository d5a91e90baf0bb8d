#include "validators/looking/folder_look.h"

#include <algorithm>
#include <iterator>

#include "formats/core/index_columns.h"
#include "validators/looking/shard_loop.h"

namespace shardpack {
namespace {

constexpr size_t kMostFolderNotes = 20;

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

void FolderCounts::Add(const FolderCounts& other) {
  for (const auto& [pair, count] : other.misplaced) misplaced[pair] += count;
  for (const auto& [label, theirs] : other.classes) {
    OfClass& ours = classes[label];
    if (ours.deeper == 0 || (theirs.deeper > 0 && theirs.first < ours.first))
      ours.first = theirs.first;
    ours.direct += theirs.direct;
    ours.deeper += theirs.deeper;
  }
}

FolderLook::FolderLook(std::span<const std::string> classes) : classes_(classes) {
  for (size_t n = 0; n < classes.size(); ++n)
    numbers_.emplace(View(classes[n]), static_cast<uint32_t>(n));
}

FolderLook::Path FolderLook::Read(std::string_view folder) const {
  Path path;
  while (!folder.empty()) {
    const size_t end = std::min(folder.find('/'), folder.size());
    const auto known = numbers_.find(View(folder.substr(0, end)));
    folder.remove_prefix(std::min(end + 1, folder.size()));
    if (known == numbers_.end()) continue;
    path.classes.push_back(known->second);
    path.innermost = known->second;
    path.below = folder.substr(0, folder.find('/'));
  }
  // dog/dog/1.jpg lies in one class's folder, not in two.
  std::sort(path.classes.begin(), path.classes.end());
  path.classes.erase(std::unique(path.classes.begin(), path.classes.end()), path.classes.end());
  return path;
}

FolderCounts FolderLook::Count(const ShardIndex& index) const {
  FolderCounts counts;
  if (numbers_.empty()) return counts;
  const auto labels = NumbersOf<int64_t>(index, IndexColumn::kLabels);
  absl::flat_hash_map<absl::string_view, Path> known;
  std::vector<FolderCounts::OfClass> classes(classes_.size());
  for (uint64_t record = 0; record < labels.size(); ++record) {
    const int64_t label = labels[record];
    if (label < 0) continue;
    std::string_view path = index.source_path(record);
    if (path.empty()) path = index.key(record);
    const size_t slash = path.rfind('/');
    if (slash == path.npos) continue;
    const std::string_view folder = path.substr(0, slash);
    auto [place, added] = known.try_emplace(View(folder));
    if (added) place->second = Read(folder);
    const Path& read = place->second;
    for (const uint32_t other : read.classes) {
      if (other != label) ++counts.misplaced[{label, other}];
    }
    if (read.classes.empty() || read.innermost != label) continue;
    FolderCounts::OfClass& of_class = classes[read.innermost];
    if (read.below.empty()) {
      ++of_class.direct;
    } else if (of_class.deeper++ == 0 || read.below < of_class.first) {
      of_class.first = std::string(read.below);
    }
  }
  for (size_t n = 0; n < classes.size(); ++n) {
    if (classes[n].direct + classes[n].deeper > 0)
      counts.classes[static_cast<int64_t>(n)] = std::move(classes[n]);
  }
  return counts;
}

void FolderLook::AddNotes(const FolderCounts& counts, std::span<const uint64_t> samples,
                          std::vector<StatsNote>& notes) const {
  std::vector<StatsNote> found;
  for (const auto& [pair, count] : counts.misplaced) {
    const auto label = static_cast<size_t>(pair.first);
    // A class whose samples all lie below another's folder is made that way.
    if (label >= classes_.size() || count >= samples[label]) continue;
    found.push_back({.kind = NoteKind::kMisplacedFolder,
                     .count = count,
                     .names = {classes_[label], classes_[pair.second]}});
  }
  uint64_t direct = 0, deeper = 0;
  for (const auto& [label, of_class] : counts.classes) {
    direct += of_class.direct;
    deeper += of_class.deeper;
  }
  for (const auto& [label, of_class] : counts.classes) {
    // Where most samples lie deeper, that is how the folders are meant.
    if (deeper > direct || of_class.deeper == 0 || of_class.direct == 0) continue;
    found.push_back({.kind = NoteKind::kDeeperFolder,
                     .count = of_class.deeper,
                     .names = {classes_[static_cast<size_t>(label)], of_class.first}});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const StatsNote& a, const StatsNote& b) { return a.count > b.count; });
  found.resize(std::min(found.size(), kMostFolderNotes));
  notes.insert(notes.end(), std::make_move_iterator(found.begin()),
               std::make_move_iterator(found.end()));
}

}  // namespace shardpack
