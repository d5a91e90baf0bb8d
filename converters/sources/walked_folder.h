// What a walk over a folder collects, and how it becomes a listing.
//
//   WalkedFolders walked;   // filled by the threads of a walk
//   absl::StatusOr<FolderWalk> walk = JoinFolders(walked, root_path);
//
// Internal to the folder source.
//
// Thread-safety: as noted at WalkedFolder while the walk goes on; JoinFolders: after it.
// Errors: JoinFolders: InvalidArgument if the root holds an unfinished build.
#ifndef SHARDPACK_CONVERTERS_SOURCES_WALKED_FOLDER_H_
#define SHARDPACK_CONVERTERS_SOURCES_WALKED_FOLDER_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/listing/hidden_entries.h"
#include "converters/listing/listing.h"
#include "converters/listing/sidecars_in_other_case.h"
#include "converters/sources/folder_access.h"
#include "converters/sources/folder_listing.h"

namespace shardpack {

// One file while its folder is being read. 24 bytes, since there may be many millions.
struct WalkedFile {
  static constexpr uint8_t kUsable = 0xFF, kDropped = 0xFE;  // else a SkipReason
  uint64_t inode_or_bytes;  // the inode until the file is examined; on a cold disk, inode order
                            // is fastest
  int64_t mtime_ns;
  uint32_t name_at;
  uint16_t name_bytes;
  uint8_t type;  // DT_...
  uint8_t outcome;
};
static_assert(sizeof(WalkedFile) == 24);

struct WalkedFolder {
  std::string path;
  WalkedFolder* parent = nullptr;
  dev_t device = 0;
  ino_t inode = 0;
  int links = 0;  // links to folders on the way here
  // Of a folder that a link leads to, else "": relative to the root, or absolute outside of it.
  std::string link_target;
  bool has_manifest = false, has_index = false;
  bool packed = false;  // written by pack: a dataset, or what has not ended

  Descriptor fd;  // open while its files are examined
  std::string names;
  std::vector<WalkedFile> entries;
  std::atomic<size_t> chunks_left{0};
  std::mutex mutex;  // guards the next four, which chunks of one folder share
  std::vector<std::pair<uint32_t, std::string>>
      details;  // name_at of an entry -> detail of its skip
  std::map<std::string, uint64_t> ignored;
  SidecarsInOtherCase other_case;
  HiddenEntries hidden;

  std::string_view Name(const WalkedFile& entry) const {
    return std::string_view(names).substr(entry.name_at, entry.name_bytes);
  }
};

struct LostFolder {
  WalkedFolder* folder;
  SkipReason reason;
  std::string detail;
};

struct WalkedFolders {
  std::deque<WalkedFolder> folders;
  std::map<std::string, WalkedFolder> above;  // what the folders of a part lie in; not read
  std::vector<LostFolder> lost;
  std::vector<std::string> unmatched;  // a line for each glob that has matched nothing
};

// Whether files that are not listed may be there; of a link that leads back, the target is listed
// elsewhere, and a folder that pack has written is left out anyway.
bool IsUnread(const LostFolder& lost);

// Merges the folders into sorted columns, and frees them meanwhile.
absl::StatusOr<FolderWalk> JoinFolders(WalkedFolders& walked, const std::string& root_path);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_WALKED_FOLDER_H_
