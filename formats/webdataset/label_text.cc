#include "formats/webdataset/label_text.h"

#include <cstddef>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "formats/core/finding.h"
#include "formats/io/status_macros.h"
#include "formats/tar/header_reader.h"
#include "formats/tar/tar_walker.h"
#include "formats/webdataset/webdataset_layout.h"

namespace shardpack {

absl::StatusOr<std::optional<std::string>> LabelText(const File& file, uint64_t offset,
                                                     uint64_t length) {
  HeaderReader in(file, offset + length);
  RETURN_IF_ERROR(in.Skip(offset));
  FindingList ignored(/*keep=*/0);  // the scan that found the record already reported its damage
  BasicTarWalker<HeaderReader> walker(in, file.path(), ignored, /*thorough=*/false);
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, walker.Next());
    if (!more) return std::nullopt;
    const TarMember& member = walker.member();
    const std::optional<MemberName> name = SplitMemberName(member.name);
    if (member.type != kTarRegular || !name || member.size_bytes > kMaxLabelBytes ||
        absl::AsciiStrToLower(absl::string_view(name->extension.data(), name->extension.size())) !=
            kLabelExtension)
      continue;
    std::string text(member.size_bytes, '\0');
    RETURN_IF_ERROR(
        file.ReadExactlyAt(member.data_offset, std::as_writable_bytes(std::span(text))));
    return text;
  }
}

}  // namespace shardpack
