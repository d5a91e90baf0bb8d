#include "formats/webdataset/tool_indexes/shard_members.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "formats/core/finding.h"
#include "formats/io/status_macros.h"
#include "formats/tar/header_reader.h"
#include "formats/tar/tar_walker.h"
#include "formats/webdataset/webdataset_layout.h"

namespace shardpack {

absl::StatusOr<uint64_t> VisitMembers(const File& file, uint64_t size_bytes,
                                      std::string_view shard_name, const MemberVisitor& visit) {
  HeaderReader in(file, size_bytes);
  FindingList findings(/*keep=*/1);
  BasicTarWalker<HeaderReader> walker(in, shard_name, findings, /*thorough=*/false);
  std::string key;
  bool first = true;
  uint64_t end = 0;
  for (;;) {
    ASSIGN_OR_RETURN(bool more, walker.Next());
    if (!more) break;
    const TarMember& member = walker.member();
    end = std::max(end, member.end());
    const std::optional<MemberName> name = SplitMemberName(member.name);
    if (member.type != kTarRegular || !name || IsMetaName(member.name)) continue;
    RETURN_IF_ERROR(visit({.key = name->key,
                           .extension = name->extension,
                           .name = member.name,
                           .offset = member.offset,
                           .data_offset = member.data_offset,
                           .size_bytes = member.size_bytes,
                           .has_extension_record = member.has_extension_record,
                           .begins_sample = first || name->key != key}));
    key.assign(name->key);
    first = false;
  }
  if (findings.errors() == 0) return end;
  const std::string problem =
      findings.findings().empty() ? std::string() : ToText(findings.findings().front());
  return absl::DataLossError(problem);
}

absl::StatusOr<uint64_t> VisitMembers(const SidecarInput& input, const ManifestShard& shard,
                                      const MemberVisitor& visit) {
  ASSIGN_OR_RETURN(File file,
                   File::OpenRead(absl::StrCat(std::string(input.root), "/", shard.name)));
  return VisitMembers(file, shard.bytes, shard.name, visit);
}

}  // namespace shardpack
