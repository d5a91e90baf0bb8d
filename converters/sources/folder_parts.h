// Parts of a folder: several processes list a large source, each a part of its folders, and one
// joins what they have found. The result is that of one walk.
//
//   SourceFolder root = *OpenSourceFolder("/data/train");
//   std::vector<FolderPart> parts = FindFolderParts(root, options);
//   absl::StatusOr<std::string> bytes = ListFolderPart(root, options, parts[7], io_pool, listed);
//   FolderParts all;   // each part was listed once, by whomever
//   for (const std::string& each : bytes_of_all) RETURN_IF_ERROR(all.Add(each));
//   absl::StatusOr<FolderWalk> walk = std::move(all).Join(root.path);
//
// A part is a folder, with or without the folders below it. Folders are never divided, so that one
// of many million files is listed by one process.
//
// Thread-safety: one caller each.
// Errors: as FolderSource::List. Add, Join: DataLoss for bytes that ListFolderPart has not made, or
// that are not of one walk.
#ifndef SHARDPACK_CONVERTERS_SOURCES_FOLDER_PARTS_H_
#define SHARDPACK_CONVERTERS_SOURCES_FOLDER_PARTS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/sources/folder_access.h"
#include "converters/sources/folder_source.h"
#include "converters/threads/io_pool.h"

namespace shardpack {

struct FolderWalk;
struct WalkedFolders;

struct FolderPart {
  std::string path;  // relative to the root
  bool deep = true;  // with all folders below it
};

// A source that is a folder: opened for OpenAt alone, and its path, absolute and resolved.
struct SourceFolder {
  Descriptor descriptor;
  std::string path;
};
absl::StatusOr<SourceFolder> OpenSourceFolder(const std::string& path);

// Divides a source, by a look at its upper folders, into enough parts for many processes.
std::vector<FolderPart> FindFolderParts(const SourceFolder& root,
                                        const FolderSourceOptions& options);

// `listed` grows as files are found.
absl::StatusOr<std::string> ListFolderPart(const SourceFolder& root,
                                           const FolderSourceOptions& options,
                                           const FolderPart& part, IoPool& pool,
                                           std::atomic<uint64_t>& listed);

class FolderParts {
 public:
  FolderParts();
  ~FolderParts();
  absl::Status Add(std::string_view bytes);
  absl::StatusOr<FolderWalk> Join(const std::string& root_path) &&;

 private:
  std::unique_ptr<WalkedFolders> walked_;
  bool any_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_FOLDER_PARTS_H_
