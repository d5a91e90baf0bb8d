#include "formats/webdataset/webdataset_scanner.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "formats/core/sample.h"
#include "formats/io/hash.h"
#include "formats/io/status_macros.h"
#include "formats/tar/tar_walker.h"
#include "formats/webdataset/webdataset_checker.h"
#include "formats/webdataset/webdataset_layout.h"

namespace shardpack {
namespace {

constexpr size_t kImageHeadBytes = 16;
// Up to this many fields are compared one by one, but not a hostile sample of a million members.
constexpr size_t kFewFields = 16;
constexpr size_t kMaxShownName = 200;

char LowerCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The state of one Scan. Its vectors and strings keep their memory between samples.
class SampleWalk {
 public:
  SampleWalk(SequentialReader& in, const ScanOptions& options, RecordSink& records,
             FindingSink& findings)
      : in_(in),
        shard_(options.shard_name),
        strict_(options.strict),
        records_(records),
        findings_(findings),
        walker_(in, options.shard_name, findings, options.strict),
        checker_(options.shard_name, options.strict, findings) {}

  absl::Status Run() {
    for (;;) {
      ASSIGN_OR_RETURN(bool more, walker_.Next());
      if (!more) break;
      RETURN_IF_ERROR(OnMember());
    }
    EndSample();
    checker_.Finish();
    ReportOutside(FindingId::kWdsNoExtension, without_extension_);
    ReportOutside(FindingId::kWdsHiddenName, hidden_);
    return absl::OkStatus();
  }

 private:
  struct Part {
    size_t name_at = 0, name_bytes = 0;  // in names_
    ImageRank rank = ImageRank::kNone;
    bool is_label = false;
    ScannedField field;
  };

  // Members that belong to no sample, or, hidden in a folder, to one of the folder's name.
  struct Outside {
    uint64_t members = 0, first_offset = 0;
    std::string first_name;
    void Add(const TarMember& member) {
      if (members++ > 0) return;
      first_offset = member.header_offset;
      first_name = std::string(member.name.substr(0, kMaxShownName));
    }
  };

  absl::Status OnMember() {
    const TarMember& member = walker_.member();
    const bool begins = !open_ || BeginsSample(member);
    const std::optional<MemberName> name =
        checker_.OnMember(member, number_ + (open_ && begins ? 1 : 0));
    if (member.type == kTarRegular && IsHiddenName(member.name)) {
      CountHidden(member);
    } else if (member.type == kTarRegular && !name) {
      without_extension_.Add(member);
    }
    if (!name) return absl::OkStatus();
    if (begins) {
      EndSample();
      BeginSample(*name);
    } else if (walker_.gaps() != gaps_) {
      beside_gap_ = true;
    }
    gaps_ = walker_.gaps();
    archives_ = walker_.archives();
    // The file may have been cut off within the padding.
    end_ = std::min(member.end(), in_.size());
    return AddPart(*name);
  }

  // A member with the current key belongs to the current sample, unless an archive ended between
  // them; any other member begins the next one.
  bool BeginsSample(const TarMember& member) const {
    const std::optional<MemberName> name = SplitMemberName(member.name);
    return name && (name->key != key_ || walker_.archives() != archives_);
  }

  void BeginSample(const MemberName& name) {
    open_ = true;
    beside_gap_ = walker_.gaps() != gaps_;
    key_.assign(name.key);
    begin_ = walker_.member().offset;
    label_ = kNoLabel;
    parts_.clear();
    names_.clear();
    many_.clear();
  }

  std::string_view NameOf(const Part& part) const {
    return std::string_view(names_).substr(part.name_at, part.name_bytes);
  }

  bool IsDuplicate(std::string_view extension) {
    if (parts_.size() <= kFewFields) {
      return std::any_of(parts_.begin(), parts_.end(),
                         [&](const Part& part) { return NameOf(part) == extension; });
    }
    if (many_.empty()) {
      for (const Part& part : parts_) many_.insert(Xxh3_64(AsBytes(NameOf(part))));
    }
    return !many_.insert(Xxh3_64(AsBytes(extension))).second;
  }

  absl::Status AddPart(const MemberName& name) {
    const TarMember& member = walker_.member();
    extension_.assign(name.extension);
    std::transform(extension_.begin(), extension_.end(), extension_.begin(), LowerCase);
    if (IsDuplicate(extension_)) {
      checker_.OnDuplicate(member, name, number_);
      return absl::OkStatus();
    }
    Part part;
    part.name_at = names_.size();
    part.name_bytes = extension_.size();
    part.field.offset = member.data_offset;
    part.field.length = member.size_bytes;
    ASSIGN_OR_RETURN(
        Bytes head,
        in_.Peek(std::min<uint64_t>(member.size_bytes, std::max(kMaxLabelBytes, kImageHeadBytes))));
    if (extension_ == kLabelExtension) {
      const std::optional<int64_t> label =
          member.size_bytes <= kMaxLabelBytes ? ParseLabel(AsText(head)) : std::nullopt;
      part.is_label = label.has_value();
      if (label) label_ = *label;
      if (!label) checker_.OnLabelNotInteger(member, name, number_);
    } else {
      part.rank = RankAsImage(extension_, head);
    }
    if (!part.is_label) {
      ASSIGN_OR_RETURN(uint64_t hash, in_.HashNext(member.size_bytes));
      part.field.hash = hash;
    }
    names_.append(extension_);
    parts_.push_back(part);
    return absl::OkStatus();
  }

  void EndSample() {
    if (!open_) return;
    open_ = false;
    extensions_.clear();
    fields_.clear();
    const auto image =
        std::min_element(parts_.begin(), parts_.end(), [this](const Part& a, const Part& b) {
          return a.rank != b.rank ? a.rank < b.rank : NameOf(a) < NameOf(b);
        });
    const bool has_image = image != parts_.end() && image->rank != ImageRank::kNone;
    if (has_image) {
      fields_.push_back(image->field);
      fields_.back().name = kImageField;
    }
    for (const Part& part : parts_) {
      extensions_.push_back(NameOf(part));
      if (part.is_label || (has_image && &part == &*image)) continue;
      fields_.push_back(part.field);
      fields_.back().name = NameOf(part);
    }
    // Of a sample of several images, those that are not the image keep their names.
    roles_.assign(extensions_.begin(), extensions_.end());
    if (has_image) roles_[image - parts_.begin()] = kImageField;
    if (MayLackFields(has_image)) return;
    if (number_ == 0) {
      usual_.assign(roles_.begin(), roles_.end());
      std::sort(usual_.begin(), usual_.end());
    }
    checker_.OnSample({.record = number_,
                       .key = key_,
                       .offset = begin_,
                       .extensions = extensions_,
                       .has_image = has_image});
    ScannedRecord record;
    record.key = key_;
    record.label = label_;
    record.offset = begin_;
    record.length = end_ - begin_;
    record.fields = fields_;
    records_.OnRecord(record);
    ++number_;
  }

  bool MayLackFields(bool has_image) {
    // Of a sample beside a gap, which a finding has told of. The first sample cannot be compared
    // with anything.
    if (beside_gap_ || walker_.gaps() != gaps_)
      return checker_.Compare(extensions_) != WebdatasetChecker::FieldSet::kUsual;
    if (!walker_.no_end() || (usual_.empty() ? has_image : HasAllUsual())) return false;
    // A file without end blocks may be cut within its last sample.
    Finding finding = MakeFinding(FindingId::kTarNoEnd, shard_);
    finding.record = number_;
    finding.key = key_;
    finding.offset = begin_;
    finding.expected = TextOfNames(std::vector<std::string_view>(usual_.begin(), usual_.end()));
    finding.actual = TextOfNames(roles_);
    finding.detail = "the last sample may lack members and is left out";
    findings_.Report(std::move(finding));
    return true;
  }

  // Whether this sample has all members of the first one; its image may be of another kind.
  bool HasAllUsual() {
    std::sort(roles_.begin(), roles_.end());
    return std::includes(roles_.begin(), roles_.end(), usual_.begin(), usual_.end());
  }

  // Of hidden members, those that would be parts of samples under a name without the dot: other
  // tools leave .DS_Store, ._a.jpg and __x__ on purpose.
  void CountHidden(const TarMember& member) {
    if (IsMetaName(member.name)) return;
    const std::string_view name = member.name.substr(member.name.rfind('/') + 1).substr(1);
    if (!name.starts_with('_') && SplitMemberName(name)) hidden_.Add(member);
  }

  // A strict scan has named each of them.
  void ReportOutside(FindingId id, const Outside& outside) {
    if (strict_ || outside.members == 0) return;
    Finding finding = MakeFinding(id, shard_);
    finding.offset = outside.first_offset;
    finding.detail =
        absl::StrCat(outside.members, " members, the first one here: ", outside.first_name);
    findings_.Report(std::move(finding));
  }

  SequentialReader& in_;
  const std::string_view shard_;
  const bool strict_;
  RecordSink& records_;
  FindingSink& findings_;
  TarWalker walker_;
  WebdatasetChecker checker_;

  uint64_t number_ = 0;  // of the current sample, or of the next
  bool open_ = false;
  bool beside_gap_ = false;
  // The walker's counts when the last member of a sample was read.
  uint64_t gaps_ = 0, archives_ = 0;
  Outside without_extension_, hidden_;
  std::vector<std::string> usual_;  // the roles of the first sample, sorted
  std::string key_, extension_, names_;
  uint64_t begin_ = 0, end_ = 0;
  int64_t label_ = kNoLabel;
  std::vector<Part> parts_;
  std::vector<std::string_view> extensions_;
  std::vector<std::string_view> roles_;  // the extensions; of the image, its field
  std::vector<ScannedField> fields_;
  absl::flat_hash_set<uint64_t> many_;
};

}  // namespace

absl::Status WebdatasetScanner::Scan(SequentialReader& in, const ScanOptions& options,
                                     RecordSink& records, FindingSink& findings) const {
  return SampleWalk(in, options, records, findings).Run();
}

}  // namespace shardpack
