#include "formats/webdataset/webdataset_checker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/bytes.h"
#include "formats/io/hash.h"
#include "formats/io/relative_path.h"

namespace shardpack {
namespace {

constexpr size_t kMaxNames = 20, kMaxNameBytes = 100;  // in a finding

bool IsPortableText(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
}

template <typename Strings>
std::vector<std::string> Sorted(const Strings& strings) {
  std::vector<std::string> sorted(strings.begin(), strings.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

std::string TextOfNames(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names.first(std::min(names.size(), kMaxNames))) {
    absl::StrAppend(&text, text.empty() ? "" : " ", std::string(name.substr(0, kMaxNameBytes)),
                    name.size() > kMaxNameBytes ? "..." : "");
  }
  if (names.size() > kMaxNames) absl::StrAppend(&text, " and ", names.size() - kMaxNames, " more");
  return text;
}

void WebdatasetChecker::Report(FindingId id, const TarMember& member, std::string detail) {
  Finding finding = MakeFinding(id, shard_);
  finding.offset = member.header_offset;
  finding.detail = detail.empty() ? std::string(member.name) : std::move(detail);
  findings_.Report(std::move(finding));
}

Finding WebdatasetChecker::OfField(FindingId id, const TarMember& member, const MemberName& name,
                                   uint64_t record) const {
  Finding finding = MakeFinding(id, shard_);
  finding.record = record;
  finding.key = std::string(name.key);
  finding.field = std::string(name.extension);
  finding.offset = member.header_offset;
  return finding;
}

// Returns true for a regular file.
bool WebdatasetChecker::CheckType(const TarMember& member) {
  if (member.type == kTarRegular) return true;
  Finding finding = MakeFinding(FindingId::kTarType, shard_);
  finding.offset = member.header_offset;
  finding.detail = absl::StrCat(std::string(member.name), ", type ", std::string(1, member.type));
  if (member.type == kTarFolder) {
    // Every reader skips them; tar itself writes them when it packs a folder.
    finding.severity = Severity::kWarning;
    if (!strict_) return false;
  }
  findings_.Report(std::move(finding));
  return false;
}

void WebdatasetChecker::CheckNameStyle(const TarMember& member) {
  if (member.has_extension_record) extension_records_.Add(member.offset);
  if (member.name.size() > kTarNameBytes) long_names_.Add(member.header_offset);
  if (!IsPortableText(member.name)) Report(FindingId::kWdsNameStyle, member);
}

std::optional<MemberName> WebdatasetChecker::OnMember(const TarMember& member, uint64_t record) {
  if (LeavesFolder(member.name)) Report(FindingId::kTarName, member);
  if (strict_) CheckNameStyle(member);
  if (!CheckType(member)) return std::nullopt;
  const std::optional<MemberName> name = SplitMemberName(member.name);
  if (strict_) {
    if (IsHiddenName(member.name)) {
      Report(FindingId::kWdsHiddenName, member);
    } else if (!name) {
      Report(FindingId::kWdsNoExtension, member);
    } else if (member.size_bytes == 0) {
      findings_.Report(OfField(FindingId::kWdsEmptyMember, member, *name, record));
    }
  }
  return IsMetaName(member.name) ? std::nullopt : name;
}

void WebdatasetChecker::OnDuplicate(const TarMember& member, const MemberName& name,
                                    uint64_t record) {
  findings_.Report(OfField(FindingId::kTarDuplicateMember, member, name, record));
}

void WebdatasetChecker::OnLabelNotInteger(const TarMember& member, const MemberName& name,
                                          uint64_t record) {
  if (strict_) {
    findings_.Report(OfField(FindingId::kWdsLabelNotInteger, member, name, record));
  }
}

WebdatasetChecker::FieldSet WebdatasetChecker::Compare(
    std::span<const std::string_view> extensions) const {
  if (usual_extensions_.empty()) return FieldSet::kUnknown;
  const auto same = [&](const auto& others) {
    return std::equal(extensions.begin(), extensions.end(), others.begin(), others.end());
  };
  if (same(usual_extensions_)) return FieldSet::kUsual;
  if (extensions.size() != usual_extensions_.size()) return FieldSet::kOther;
  return Sorted(extensions) == Sorted(usual_extensions_) ? FieldSet::kUsual : FieldSet::kOther;
}

void WebdatasetChecker::OnSample(const Sample& sample) {
  const FieldSet fields = Compare(sample.extensions);
  if (fields == FieldSet::kUnknown) {
    usual_extensions_.assign(sample.extensions.begin(), sample.extensions.end());
    usual_text_ = TextOfNames(sample.extensions);
  }
  if (!strict_) return;
  const auto report = [&](FindingId id) {
    Finding finding = MakeFinding(id, shard_);
    finding.record = sample.record;
    finding.key = std::string(sample.key);
    finding.offset = sample.offset;
    if (id == FindingId::kWdsFieldDrift) {
      finding.expected = usual_text_;
      finding.actual = TextOfNames(sample.extensions);
    }
    findings_.Report(std::move(finding));
  };
  if (fields == FieldSet::kOther) report(FindingId::kWdsFieldDrift);
  if (!sample.has_image) report(FindingId::kWdsNoImage);
  if (!keys_.insert(Xxh3_64(AsBytes(sample.key))).second) report(FindingId::kWdsKeySplit);
}

void WebdatasetChecker::ReportCounted(FindingId id, const Counted& counted) {
  if (counted.members == 0) return;
  Finding finding = MakeFinding(id, shard_);
  finding.offset = counted.first_offset;
  finding.detail = absl::StrCat(counted.members, " members, the first one here");
  findings_.Report(std::move(finding));
}

void WebdatasetChecker::Finish() {
  ReportCounted(FindingId::kTarExtension, extension_records_);
  ReportCounted(FindingId::kWdsLongName, long_names_);
}

}  // namespace shardpack
