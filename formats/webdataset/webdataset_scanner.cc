#include "formats/webdataset/webdataset_scanner.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
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

char LowerCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The state of one Scan. Its vectors and strings keep their memory between samples.
class SampleWalk {
 public:
  SampleWalk(SequentialReader& in, const ScanOptions& options, RecordSink& records,
             FindingSink& findings)
      : in_(in),
        records_(records),
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
    return absl::OkStatus();
  }

 private:
  struct Part {
    size_t name_at = 0, name_bytes = 0;  // in names_
    ImageRank rank = ImageRank::kNone;
    bool is_label = false;
    ScannedField field;
  };

  absl::Status OnMember() {
    const TarMember& member = walker_.member();
    // A member with the current key belongs to the current sample; any other member begins the next
    // one.
    const std::optional<MemberName> name = checker_.OnMember(member, number_ + NextIsAnother());
    if (!name) return absl::OkStatus();
    if (!open_ || name->key != key_) {
      EndSample();
      BeginSample(*name);
    } else if (walker_.gaps() != gaps_) {
      beside_gap_ = true;
    }
    gaps_ = walker_.gaps();
    // The file may have been cut off within the padding.
    end_ = std::min(member.end(), in_.size());
    return AddPart(*name);
  }

  uint64_t NextIsAnother() const {
    const std::optional<MemberName> name = SplitMemberName(walker_.member().name);
    return open_ && name && name->key != key_ ? 1 : 0;
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
    const auto image = std::min_element(
        parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.rank < b.rank; });
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
    if (MayLackFields(has_image)) return;
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

  bool MayLackFields(bool has_image) const {
    const bool gap = beside_gap_ || walker_.gaps() != gaps_;
    if (!gap && !walker_.no_end()) return false;
    const WebdatasetChecker::FieldSet set = checker_.Compare(extensions_);
    if (set != WebdatasetChecker::FieldSet::kUnknown) {
      return set == WebdatasetChecker::FieldSet::kOther;
    }
    // The first sample cannot be compared with anything. A file without end blocks may still be
    // complete.
    return gap || !has_image;
  }

  SequentialReader& in_;
  RecordSink& records_;
  TarWalker walker_;
  WebdatasetChecker checker_;

  uint64_t number_ = 0;  // of the current sample, or of the next
  bool open_ = false;
  bool beside_gap_ = false;
  uint64_t gaps_ = 0;  // the walker's count when the last member of a sample was read
  std::string key_, extension_, names_;
  uint64_t begin_ = 0, end_ = 0;
  int64_t label_ = kNoLabel;
  std::vector<Part> parts_;
  std::vector<std::string_view> extensions_;
  std::vector<ScannedField> fields_;
  absl::flat_hash_set<uint64_t> many_;
};

}  // namespace

absl::Status WebdatasetScanner::Scan(SequentialReader& in, const ScanOptions& options,
                                     RecordSink& records, FindingSink& findings) const {
  return SampleWalk(in, options, records, findings).Run();
}

}  // namespace shardpack
