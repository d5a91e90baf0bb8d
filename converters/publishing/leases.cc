#include "converters/publishing/leases.h"

#include <errno.h>
#include <fcntl.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/publishing/pack_names.h"
#include "formats/io/list_folder.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr char kUnknown[] = "unknown";

// What file systems in user space may show in place of an inode's number.
bool IsInode(uint64_t number) { return number != 0 && number != 0xffffffff; }

std::string OwnerIn(const OwnedFolder& dataset, const std::string& lease) {
  absl::StatusOr<std::string> text = dataset.Read(lease, kMaxOwnerBytes);
  return text.ok() && IsRunName(*text) ? *std::move(text) : kUnknown;
}

}  // namespace

absl::StatusOr<Leases> Leases::Read(const OwnedFolder& dataset, const std::set<uint32_t>& done) {
  Leases leases;
  ASSIGN_OR_RETURN(const std::vector<std::string> folders, dataset.List(kLeaseFolder));
  for (const std::string& name : folders) {
    const std::string path = absl::StrCat(std::string(kLeaseFolder), "/", name);
    if (!OwnedFolder::IsName(path)) continue;
    const std::string full = dataset.PathOf(path);
    const int fd = ::open(full.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    // Not a folder of leases, or removed by a commit.
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP || errno == ENOENT)) continue;
    RETURN_IF_ERROR(ListOpenFolder(fd, full, [&](const dirent& entry) {
      const auto lease = ParseLeaseName(entry.d_name);
      if (!lease || done.contains(lease->first)) return true;
      const uint64_t inode = IsInode(entry.d_ino) ? entry.d_ino : ~leases.owners_.size();
      const auto [owner, first] = leases.owners_.try_emplace(inode);
      if (first) owner->second = OwnerIn(dataset, absl::StrCat(path, "/", entry.d_name));
      Lease& newest = leases.newest_[lease->first];
      if (lease->second > newest.generation) newest = {lease->second, inode};
      return true;
    }));
  }
  return leases;
}

std::map<uint32_t, std::string> Leases::Newest() const {
  std::map<uint32_t, std::string> owners;
  for (const auto& [shard, lease] : newest_)
    owners.emplace_hint(owners.end(), shard, owners_.at(lease.inode));
  return owners;
}

std::set<std::string> Leases::Journals() const {
  std::set<std::string> journals;
  for (const auto& [inode, owner] : owners_) {
    if (owner != kUnknown) journals.insert(std::string(NameInFolder(WorkersJournal(owner))));
  }
  return journals;
}

}  // namespace shardpack
