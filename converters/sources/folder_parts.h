// Parts of a folder: several processes list a large source, each some of its folders, and one joins
// what they have found. The result is that of one walk.
//
//   SourceFolder root = *OpenSourceFolder("/data/train");
//   FolderDivision division{FindFolderParts(root, options, stop), mark};
//   FolderPartLister lister(root, options, division, io_pool, listed, stop);
//   absl::StatusOr<std::string> bytes = lister.List(7);
//   FolderParts all(division);   // each part was listed once, by any worker
//   for (uint32_t n = 0; n < division.parts.size(); ++n) RETURN_IF_ERROR(all.Add(n, bytes_of[n]));
//   absl::StatusOr<FolderWalk> walk = std::move(all).Join(root.path);
//
// Folders are never divided, so that one of many million files is listed by one process.
//
// Lifetime: a lister borrows all that it is given, FolderParts the division.
// Thread-safety: one caller each.
// Errors: as FolderSource::List; Cancelled when `stop` is set. Add, Join, CheckFolderPart: DataLoss
// for bytes that List has not made, or not for this division; InvalidArgument for those of another
// version.
#ifndef SHARDPACK_CONVERTERS_SOURCES_FOLDER_PARTS_H_
#define SHARDPACK_CONVERTERS_SOURCES_FOLDER_PARTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/listing/listing.h"
#include "converters/sources/folder_access.h"
#include "converters/sources/folder_division.h"
#include "converters/sources/folder_source.h"
#include "converters/threads/io_pool.h"

namespace shardpack {

struct FolderWalk;
struct WalkedFolders;

// A source that is a folder: opened for OpenAt alone, and its path, absolute and resolved.
struct SourceFolder {
  Descriptor descriptor;
  std::string path;
};
absl::StatusOr<SourceFolder> OpenSourceFolder(const std::string& path);

// Names in the root by which others know it, as where it is a disk that may not be mounted; such
// that programs leave there (.git) only if there is nothing else. None: the root holds nothing.
absl::StatusOr<std::vector<std::string>> FindWitnesses(const SourceFolder& root);
// Whether one of them is there.
absl::StatusOr<bool> AnyWitness(const SourceFolder& root, std::span<const std::string> witnesses);

// More only cost time: each is a file, and a lease.
inline constexpr size_t kMostFolderParts = 20'000;
// Divides a source, by a look at its upper folders, into enough parts for many processes. Nothing
// is found when `stop` is set.
std::vector<FolderPart> FindFolderParts(const SourceFolder& root,
                                        const FolderSourceOptions& options,
                                        const std::atomic<int>& stop,
                                        size_t most_parts = kMostFolderParts);

class FolderPartLister {
 public:
  // `listed` grows as files are found.
  FolderPartLister(const SourceFolder& root, const FolderSourceOptions& options,
                   const FolderDivision& division, IoPool& pool, std::atomic<uint64_t>& listed,
                   const std::atomic<int>& stop);
  // `unread` gets the folders that were denied or have vanished, whose files are not in the part.
  absl::StatusOr<std::string> List(uint32_t part,
                                   std::vector<UnreadFolder>* unread = nullptr) const;

 private:
  const SourceFolder& root_;
  const FolderSourceOptions& options_;
  const FolderDivision& division_;
  IoPool& pool_;
  std::atomic<uint64_t>& listed_;
  const std::atomic<int>& stop_;
  absl::flat_hash_set<std::string_view> folders_;  // of all parts
};

// How many of a part's bytes tell what it is a part of, and whether they say that it is this one.
inline constexpr size_t kFolderPartHeadBytes = 40;
absl::Status CheckFolderPart(std::string_view head, const FolderDivision& division, uint32_t part);

// The same for users: what file that is, and what puts it right.
absl::Status NotThisPart(const absl::Status& why, const std::string& file,
                         const std::string& list_again);

class FolderParts {
 public:
  explicit FolderParts(const FolderDivision& division);
  ~FolderParts();
  absl::Status Add(uint32_t part, std::string_view bytes);
  absl::StatusOr<FolderWalk> Join(const std::string& root_path) &&;

 private:
  const FolderDivision& division_;
  std::unique_ptr<WalkedFolders> walked_;
  bool any_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_FOLDER_PARTS_H_
