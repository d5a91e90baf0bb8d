#include "validators/looking/stats_notes.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "formats/core/image_info.h"

namespace shardpack {
namespace {

using absl::StrCat;

constexpr std::array<std::string_view, static_cast<size_t>(NoteKind::kCount)> kIds = {
    "label-conflict",          "split-leak",  "copies",           "copies-without-label",
    "folder-of-another-class", "empty-class", "missing-in-split", "single-sample-class",
    "folder-below-class",      "unlabelled",  "unread-label",     "no-image",
    "unknown-image",           "empty-image", "truncated-image",  "tiny-image",
    "undecodable-image",       "huge-image",  "one-color-image",  "partial-field"};

// "1 class", "2 classes".
std::string Counted(uint64_t count, std::string_view one, std::string_view many) {
  const std::string_view word = count == 1 ? one : many;
  return StrCat(count, " ", absl::string_view(word.data(), word.size()));
}

}  // namespace

std::string_view NoteId(NoteKind kind) { return kIds[static_cast<size_t>(kind)]; }

std::string NoteText(const StatsNote& note,
                     const std::function<std::string(std::string_view)>& escape) {
  std::string names;
  for (const std::string& name : note.names)
    absl::StrAppend(&names, names.empty() ? "" : ", ", escape(name));
  if (note.count > note.names.size() && !names.empty()) absl::StrAppend(&names, ", ...");
  const std::string listed = names.empty() ? "" : StrCat(": ", names);
  const auto name = [&](size_t n) { return n < note.names.size() ? escape(note.names[n]) : ""; };
  const std::string classes = Counted(note.count, "class", "classes");
  switch (note.kind) {
    case NoteKind::kLabelConflict:
      return StrCat(Counted(note.count, "image is", "images are"), " packed under several classes");
    case NoteKind::kLeak:
      return StrCat(Counted(note.count, "image is", "images are"), " in several splits");
    case NoteKind::kCopies:
      return StrCat(Counted(note.count, "image is", "images are"),
                    " in one class and split more than once");
    case NoteKind::kCopiesWithoutLabel:
      return StrCat(Counted(note.count, "image is", "images are"),
                    " in one split more than once, not all with a label that is known");
    case NoteKind::kMisplacedFolder:
      return StrCat(Counted(note.count, "sample", "samples"), " of class ", name(0),
                    note.count == 1 ? " lies" : " lie", " in a folder called ", name(1));
    case NoteKind::kEmptyClass:
      return StrCat(classes, " without samples: ", names);
    case NoteKind::kMissingInSplit:
      return StrCat(classes, " without samples in split ", escape(note.split), ": ", names);
    case NoteKind::kSingleSampleClass:
      return StrCat(classes, " of a single sample: ", names);
    case NoteKind::kDeeperFolder:
      return StrCat(Counted(note.count, "sample", "samples"), " of class ", name(0),
                    note.count == 1 ? " lies in a subfolder" : " lie in subfolders",
                    " of its folder, such as ", name(1), "; the others lie directly in it");
    case NoteKind::kUnlabelled:
      return StrCat(Counted(note.count, "sample has", "samples have"),
                    " no label, though others have one");
    case NoteKind::kUnreadLabel:
      return StrCat(Counted(note.count, "sample has", "samples have"),
                    " a label that is not a number and was not read", listed);
    case NoteKind::kNoImage: {
      std::string fields;
      for (const std::string& field : note.names)
        absl::StrAppend(&fields, fields.empty() ? "" : ", ", escape(field));
      return StrCat(note.count == 1 ? "the only sample has no image"
                                    : StrCat("none of ", note.count, " samples has an image"),
                    fields.empty()
                        ? ""
                        : StrCat("; a key ends at the first dot of a name, so that ", fields,
                                 note.names.size() == 1 ? " is a field" : " are fields"));
    }
    case NoteKind::kUnknownImage:
      return StrCat(Counted(note.count, "image is", "images are"), " in no known format, or ",
                    note.count == 1 ? "its beginning is" : "their beginnings are", " damaged",
                    listed);
    case NoteKind::kEmptyImage:
      return StrCat(Counted(note.count, "image has", "images have"), " no bytes", listed);
    case NoteKind::kTruncatedImage:
      return StrCat(Counted(note.count, "image ends", "images end"), " too early", listed);
    case NoteKind::kTinyImage:
      return StrCat(Counted(note.count, "image has", "images have"), " fewer than ", kTinyPixels,
                    " pixels in all", listed);
    case NoteKind::kUndecodableImage:
      return StrCat(Counted(note.count, "image does", "images do"), " not decode", listed);
    case NoteKind::kHugeImage:
      return StrCat(Counted(note.count, "image has", "images have"), " more than ",
                    kMaxImageFileBytes >> 20, " MiB and ", note.count == 1 ? "was" : "were",
                    " not decoded", listed);
    case NoteKind::kPlainImage:
      return StrCat(Counted(note.count, "image is", "images are"), " of nearly one color", listed);
    case NoteKind::kPartialField:
      return StrCat(Counted(note.count, "sample lacks", "samples lack"), " the field ", name(0));
    case NoteKind::kCount:
      break;
  }
  return "";
}

}  // namespace shardpack
