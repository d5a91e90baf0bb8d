#include "formats/lmdb/reading/layout_detection.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "formats/io/status_macros.h"
#include "formats/lmdb/reading/datum_scan.h"
#include "formats/lmdb/reading/pickle_scan.h"

namespace shardpack {
namespace {

// Several values vote, so that one damaged value does not change the layout of all the others.
constexpr uint64_t kVoters = 9;

constexpr FoundLayout kFound[] = {
    {LmdbLayout::kRaw, kRawLayout},
    {LmdbLayout::kCaffe, kCaffeLayout},
    {LmdbLayout::kPickle, kPickleLayout},
    {std::nullopt, "caffe2 (TensorProtos)"},
};

bool LooksLikeImage(Bytes value) {
  using namespace std::string_view_literals;
  const std::string_view text = AsText(value.first(std::min<size_t>(value.size(), 16)));
  for (const std::string_view magic : {"\xFF\xD8\xFF"sv, "\x89PNG\r\n\x1A\n"sv, "GIF8"sv, "BM"sv,
                                       "II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv}) {
    if (text.starts_with(magic)) return true;
  }
  return text.starts_with("RIFF") &&
         text.substr(std::min<size_t>(8, text.size())).starts_with("WEBP");
}

bool IsDecimal(Bytes value) {
  const std::string_view text = AsText(value);
  return !text.empty() && text.size() <= 20 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool IsPickledInteger(Bytes value) { return ScanPickle(value).kind == PickleValue::Kind::kInteger; }

// The position in kFound; nullopt if the value matches none of them.
std::optional<size_t> Vote(Bytes value) {
  if (LooksLikeImage(value)) return 0;
  Datum datum;
  if (ScanDatum(value, datum) && datum.has_data) return 1;
  if (ScanPickle(value).kind == PickleValue::Kind::kPair) return 2;
  if (LooksLikeTensorProtos(value)) return 3;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<FoundLayout> DetectLayout(TreeWalk& walk, const LmdbTree& tree, PageWindow& window) {
  struct Mark {
    std::string_view key;
    bool (*fits)(Bytes value);
    FoundLayout found;
  };
  constexpr Mark kMarks[] = {
      {"num-samples", &IsDecimal, {std::nullopt, "ocr (num-samples)"}},
      {kPickleLengthKey, &IsPickledInteger, {LmdbLayout::kPickle, kPickleLayout}},
      {"length", &IsDecimal, {std::nullopt, "stylegan2 (length)"}},
  };
  constexpr uint64_t kMarkBytes = 32;  // longer than any such value
  for (const Mark& mark : kMarks) {
    bool fits = false;
    RETURN_IF_ERROR(walk.VisitLeaf(tree, mark.key, [&](const LmdbEntry& entry) {
      if (entry.key != mark.key || entry.value_bytes > kMarkBytes) return absl::OkStatus();
      absl::StatusOr<Bytes> value = window.Read(entry.value_offset, entry.value_bytes);
      fits = value.ok() && mark.fits(*value);
      return value.status();
    }));
    if (fits) return mark.found;
  }
  std::array<int, std::size(kFound)> votes = {};
  uint64_t voters = 0;
  RETURN_IF_ERROR(walk.VisitLeaf(tree, "", [&](const LmdbEntry& entry) {
    if (voters++ >= kVoters) return absl::OkStatus();
    ASSIGN_OR_RETURN(Bytes value, window.Read(entry.value_offset, entry.value_bytes));
    if (const std::optional<size_t> vote = Vote(value)) ++votes[*vote];
    return absl::OkStatus();
  }));
  const auto most = std::max_element(votes.begin(), votes.end());
  return *most == 0 ? kFound[0] : kFound[most - votes.begin()];
}

}  // namespace shardpack
