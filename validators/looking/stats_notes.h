// StatsNote: something about a dataset that is rarely intended: a class without samples, an image
// in two splits.
//
//   for (const StatsNote& note : stats.notes) std::cout << NoteText(note, EscapeForTerminal) << '\n';
//
// Lifetime: owns its names.
// Thread-safety: plain values; NoteText is pure.
#ifndef SHARDPACK_VALIDATORS_LOOKING_STATS_NOTES_H_
#define SHARDPACK_VALIDATORS_LOOKING_STATS_NOTES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shardpack {

enum class NoteKind : uint8_t {
  kLabelConflict,       // count: images that are packed under several classes
  kLeak,                // count: images that are in several splits
  kCopies,              // count: images that are there more than once, within one split and class
  kCopiesWithoutLabel,  // likewise, within one split, where not all have a label
  kMisplacedFolder,     // names: the label's class, the folder's; count: samples
  kEmptyClass,          // names: classes; count: classes
  kMissingInSplit,      // the same, and split
  kSingleSampleClass,   // the same as kEmptyClass
  kDeeperFolder,        // names: the class, a folder below its own; count: samples
  kUnlabelled,          // count: samples without a label, though others have one
  kUnreadLabel,         // count: samples with a text for a label; names: keys of the first ones
  kNoImage,             // no sample has an image; count: all samples; names: fields with dots
  // names: keys of the first ones; count: images
  kUnknownImage,      // of a format that is not known
  kEmptyImage,        // without a byte
  kTruncatedImage,    // whose bytes end too early
  kTinyImage,         // of fewer than kTinyPixels
  kUndecodableImage,  // of those that were decoded
  kHugeImage,         // of more than kMaxImageFileBytes, where others were decoded
  kPlainImage,        // of nearly one color, likewise
  kPartialField,      // names: the field; count: samples without it
  kCount,             // not a kind
};

struct StatsNote {
  NoteKind kind = NoteKind::kLabelConflict;
  uint64_t count = 0;
  std::string split = {};
  std::vector<std::string> names = {};  // at most kMostNames
  static constexpr size_t kMostNames = 5;
};

// Of an image, in all; smaller ones are placeholders or cut too close.
inline constexpr uint64_t kTinyPixels = 16;

// "empty-class"; never changes.
std::string_view NoteId(NoteKind kind);
// One sentence without a full stop; names go through `escape`.
std::string NoteText(const StatsNote& note,
                     const std::function<std::string(std::string_view)>& escape);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_STATS_NOTES_H_
