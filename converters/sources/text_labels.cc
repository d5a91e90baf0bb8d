#include "converters/sources/text_labels.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "converters/listing/class_names.h"
#include "converters/listing/find_skip.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "readers/dataset/foreign_shard.h"

namespace shardpack {
namespace {

constexpr size_t kMaxShownLabelBytes = 64;
constexpr size_t kMaxClassNameBytes = 255;

void DropLabelField(Listing& listing) {
  std::vector<bool> drop(listing.fields.size());
  for (size_t f = 0; f < listing.fields.size(); ++f)
    drop[f] = listing.fields[f].name == kLabelTextField;
  DropFields(drop, listing);
}

// `bad`: row -> why. Rows that are skipped already keep their reason.
absl::Status SkipBadLabels(const std::map<uint64_t, std::string>& bad, MissingPart missing,
                           Listing& listing) {
  if (missing == MissingPart::kKeep) return absl::OkStatus();
  std::vector<Skip> found;
  for (const auto& [row, why] : bad) {
    if (missing == MissingPart::kError) {
      return absl::InvalidArgumentError(
          absl::StrCat(EscapeForTerminal(listing.Path(row)), ": ", EscapeForTerminal(why)));
    }
    if (FindSkip(listing.skips, row) == nullptr) found.push_back({row, SkipReason::kBadLabel, why});
  }
  listing.skips.insert(listing.skips.end(), found.begin(), found.end());
  std::sort(listing.skips.begin(), listing.skips.end(),
            [](const Skip& a, const Skip& b) { return a.row < b.row; });
  return absl::OkStatus();
}

// Why a text cannot be the name of a class; "" if it can.
std::string WhyNoClass(std::string_view text) {
  if (text.empty()) return "is empty";
  const bool control = std::any_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
  return control ? absl::StrCat("has control characters, and is not a name of a class: ",
                                std::string(text))
                 : "";
}

// Numbers names in the order in which they occur.
class Numbering {
 public:
  int32_t NumberOf(const std::string& name) {
    const auto [known, fresh] = numbers_.try_emplace(name, static_cast<int32_t>(names_.size()));
    if (fresh) names_.push_back(name);
    return known->second;
  }

  // Gives labels and listing their final numbers.
  absl::Status Finish(const std::vector<std::string>& given, std::vector<int32_t> labels,
                      Listing& listing) const {
    listing.classes = given.empty() ? names_ : given;
    if (given.empty()) std::sort(listing.classes.begin(), listing.classes.end());
    absl::flat_hash_map<std::string_view, int32_t> places;
    for (size_t i = 0; i < listing.classes.size(); ++i)
      places.emplace(listing.classes[i], static_cast<int32_t>(i));
    std::vector<int32_t> final;
    for (const std::string& name : names_) {
      const auto place = places.find(name);
      if (place == places.end()) {
        return absl::InvalidArgumentError(absl::StrCat("the .cls \"", EscapeForTerminal(name),
                                                       "\" is not among the classes of --classes",
                                                       AlikeClass(given, name)));
      }
      final.push_back(place->second);
    }
    for (int32_t& label : labels) label = label < 0 ? label : final[static_cast<size_t>(label)];
    listing.label = std::move(labels);
    return absl::OkStatus();
  }

 private:
  absl::flat_hash_map<std::string, int32_t> numbers_;
  std::vector<std::string> names_;
};

}  // namespace

void TextLabels::CountShard(const ShardIndex& index, uint32_t shard, uint64_t first_row) {
  const std::optional<size_t> field = index.FindField(kLabelTextField);
  for (uint64_t record = 0; record < index.records(); ++record) {
    const bool labelled = index.label(record) != kNoLabel;
    labelled_ += labelled ? 1 : 0;
    if (!field || !index.has_field(record, *field)) {
      unlabelled_ += labelled ? 0 : 1;
      continue;
    }
    labels_beside_texts_ = labels_beside_texts_ || labelled;
    texts_.push_back(
        {first_row + record, {shard, record}, *field, index.field(record, *field).length});
  }
}

absl::StatusOr<std::string> TextLabels::Read(const Text& text) const {
  std::string bytes(text.bytes, '\0');
  RETURN_IF_ERROR(
      dataset_.ReadField(text.at, text.field, std::as_writable_bytes(std::span(bytes))));
  return std::string(absl::StripAsciiWhitespace(bytes));
}

std::string TextLabels::Name(const ShardIndex& index, const Text& text) const {
  const std::string key(index.key(text.at.record));
  return key.empty() ? absl::StrCat("its .", std::string(kLabelTextField))
                     : absl::StrCat("the .", std::string(kLabelTextField), " of ", key);
}

absl::StatusOr<std::string> TextLabels::WhyNoLabel(const Text& text) const {
  ASSIGN_OR_RETURN(const ShardIndex* index, dataset_.BorrowIndex(text.at.shard));
  std::string value = absl::StrCat(text.bytes, " bytes");
  if (text.bytes <= kMaxShownLabelBytes) {
    ASSIGN_OR_RETURN(value, Read(text));
  }
  return absl::StrCat(Name(*index, text), " is not a number: ", value);
}

// Samples that were forgotten, or marked to be ignored.
void TextLabels::WarnOfUnlabelled(Listing& listing) const {
  const bool foreign = dataset_.manifest() == nullptr || dataset_.manifest()->indexed_in_place();
  if (!foreign || dataset_.format() != "webdataset" || labelled_ == 0 || unlabelled_ == 0) return;
  listing.warnings.push_back(absl::StrCat(unlabelled_, " of ", listing.rows(), " samples ",
                                          unlabelled_ == 1
                                              ? "has no .cls, or a number below 0, and is"
                                              : "have no .cls, or a number below 0, and are",
                                          " packed without a label"));
}

absl::Status TextLabels::Settle(MissingPart missing, Listing& listing) const {
  WarnOfUnlabelled(listing);
  if (texts_.empty() || missing == MissingPart::kKeep || missing == MissingPart::kDrop ||
      labels_beside_texts_)
    return absl::OkStatus();
  if (labelled_ == 0) {
    if (dataset_.manifest() == nullptr || dataset_.manifest()->indexed_in_place()) {
      listing.warnings.push_back(absl::StrCat(
          texts_.size(), texts_.size() == 1 ? " sample has a .cls" : " samples have a .cls",
          " that is not a number, and no label: a field like others; --label-from cls takes "
          "these texts as classes"));
    }
    return absl::OkStatus();
  }
  std::map<uint64_t, std::string> bad;
  for (const Text& text : texts_) {
    ASSIGN_OR_RETURN(bad[text.row], WhyNoLabel(text));
    if (missing == MissingPart::kError) break;
  }
  RETURN_IF_ERROR(SkipBadLabels(bad, missing, listing));
  DropLabelField(listing);
  return absl::OkStatus();
}

absl::Status TextLabels::MakeClasses(const std::vector<std::string>& given, MissingPart missing,
                                     Listing& listing) const {
  if (texts_.empty()) {
    return absl::InvalidArgumentError(
        "--label-from cls takes the texts of .cls as classes, and no sample has one that is not a "
        "number; leave it out");
  }
  Numbering numbers;
  std::vector<int32_t> labels(listing.rows(), -1);
  std::map<uint64_t, std::string> bad;
  for (const Text& text : texts_) {
    ASSIGN_OR_RETURN(const ShardIndex* index, dataset_.BorrowIndex(text.at.shard));
    if (text.bytes > kMaxClassNameBytes) {
      bad[text.row] = absl::StrCat(Name(*index, text), " has ", text.bytes,
                                   " bytes, too many for the name of a class");
      continue;
    }
    const absl::StatusOr<std::string> value = Read(text);
    if (!value.ok() && !absl::IsDataLoss(value.status())) return value.status();
    const std::string why = value.ok() ? WhyNoClass(*value) : "is damaged";
    if (why.empty()) {
      labels[text.row] = numbers.NumberOf(*value);
    } else {
      bad[text.row] = absl::StrCat(Name(*index, text), " ", why);
    }
  }
  for (uint64_t row = 0; row < listing.rows(); ++row) {
    if (labels[row] >= 0 || bad.contains(row)) continue;
    if (listing.label[row] >= 0 && !labels_beside_texts_) {
      labels[row] = numbers.NumberOf(absl::StrCat(listing.label[row]));
    } else {
      bad[row] = "it has no .cls";
    }
  }
  RETURN_IF_ERROR(SkipBadLabels(bad, missing, listing));
  RETURN_IF_ERROR(numbers.Finish(given, std::move(labels), listing));
  DropLabelField(listing);
  return absl::OkStatus();
}

}  // namespace shardpack
