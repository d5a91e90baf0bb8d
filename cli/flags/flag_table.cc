// The table of flags, and how each stores its value.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "cli/flags/flags.h"
#include "cli/terminal/units.h"
#include "formats/formats.h"
#include "formats/io/enum_words.h"
#include "formats/io/hash.h"
#include "validators/looking/looking_options.h"

namespace shardpack::cli {
namespace {

using Line = CommandLine;
using Text = const std::string&;
using absl::Status;

constexpr VerbSet kPacking = In(Verb::kBuild) | In(Verb::kPlan);
constexpr VerbSet kListing = kPacking | In(Verb::kList);
constexpr VerbSet kMaking = kPacking | In(Verb::kConvert);
constexpr VerbSet kBuilding = In(Verb::kBuild) | In(Verb::kConvert);
constexpr VerbSet kPublishing = kBuilding | In(Verb::kCommit);
constexpr VerbSet kReading = In(Verb::kInfo) | In(Verb::kLs) | In(Verb::kCat) | In(Verb::kExtract);
constexpr VerbSet kLooking = In(Verb::kStats) | In(Verb::kDiff) | In(Verb::kDups);
constexpr VerbSet kCopies = In(Verb::kDups) | In(Verb::kReport);
constexpr VerbSet kSelecting = In(Verb::kLs) | In(Verb::kExtract);
constexpr VerbSet kLong = kMaking | In(Verb::kList) | In(Verb::kCommit) | In(Verb::kIndex) |
                          In(Verb::kValidate) | In(Verb::kRepair) | In(Verb::kExtract) |
                          In(Verb::kDups) | In(Verb::kReport);

PackRequest& Request(Line& line) { return line.pack().request; }

template <typename Parsed, typename Into>
Status Keep(absl::StatusOr<Parsed> parsed, Into* into) {
  if (!parsed.ok()) return parsed.status();
  *into = static_cast<Into>(*std::move(parsed));
  return absl::OkStatus();
}

Status KeepSwitch(Text text, bool* into) {
  *into = text == "true";
  return absl::OkStatus();
}

Status KeepText(Text text, std::string* into) {
  if (text.empty()) return absl::InvalidArgumentError("expected a value that is not empty");
  *into = text;
  return absl::OkStatus();
}

Status KeepAtLeastOne(absl::StatusOr<uint64_t> parsed, uint64_t* into) {
  if (parsed.ok() && *parsed == 0) return absl::InvalidArgumentError("expected 1 or more");
  return Keep(std::move(parsed), into);
}

// Stores a number from 1 to `most`.
Status KeepBelow(Text text, uint64_t most, uint32_t* into) {
  const absl::StatusOr<uint64_t> count = ParseCount(text);
  if (!count.ok() || *count < 1 || *count > most) {
    return absl::InvalidArgumentError(absl::StrCat("expected a number from 1 to ", most));
  }
  return Keep(count, into);
}

Status KeepThreads(Text text, int* into) {
  const absl::StatusOr<uint64_t> count = ParseCount(text);
  if (!count.ok() || *count < 1 || *count > 4096) {
    return absl::InvalidArgumentError("expected a number from 1 to 4096");
  }
  *into = static_cast<int>(*count);
  return absl::OkStatus();
}

// StoreFlag has checked that `text` is an allowed value.
template <HasWords Enum>
Status KeepWord(Text text, Enum* into) {
  *into = FindWord<Enum>(text).value_or(*into);
  return absl::OkStatus();
}

// The same for choices whose words are only in the table.
template <typename Enum>
Status KeepChoice(Text text, std::initializer_list<std::string_view> names, Enum* into) {
  *into = static_cast<Enum>(std::find(names.begin(), names.end(), text) - names.begin());
  return absl::OkStatus();
}

Status StoreLabelFrom(Text text, Line& line) {
  FolderSourceOptions& source = Request(line).source;
  source.label_from =
      text == "none" ? FolderSourceOptions::LabelFrom::kNone : FolderSourceOptions::LabelFrom::kDir;
  source.label_dir_given = false;
  Request(line).label_from = text.starts_with("dir:") ? "dir" : text;
  for (const std::string_view word : {"dir", "none", "column", "largest", "single", "cls"}) {
    if (text == word) return absl::OkStatus();
  }
  const absl::StatusOr<uint64_t> level =
      text.starts_with("dir:") ? ParseCount(text.substr(4)) : absl::InvalidArgumentError("");
  if (!level.ok() || *level > 100) {
    return absl::InvalidArgumentError(
        "expected dir, dir:N with N counting folders from 0, column, largest, single, cls or none");
  }
  source.label_dir = static_cast<int>(*level);
  source.label_dir_given = true;
  return absl::OkStatus();
}

Status StoreExtensions(Text text, Line& line) {
  if (text == "any") {
    Request(line).source.any_extension = true;
    return absl::OkStatus();
  }
  std::vector<std::string> extensions;
  SplitAt(text, ',', &extensions);
  if (extensions.empty())
    return absl::InvalidArgumentError("expected extensions, as in jpg,png, or any");
  for (std::string& extension : extensions) {
    if (extension.starts_with(".")) extension.erase(0, 1);
    Request(line).source.extensions.push_back(std::move(extension));
  }
  return absl::OkStatus();
}

Status StoreMemory(Text text, Line& line) {
  if (text.ends_with("%")) {
    line.run.memory_bytes = 0;
    const Status kept = Keep(ParseShare(text), &line.run.memory_share);
    if (kept.ok() && line.run.memory_share > 0) return kept;
  } else if (const absl::StatusOr<uint64_t> bytes = ParseSize(text); bytes.ok() && *bytes > 0) {
    line.run.memory_bytes = *bytes;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("expected a share or a size, as in 25% or 4GiB");
}

Status StoreExpect(Text text, Line& line) {
  const std::string_view hex = std::string_view(text).substr(text.starts_with("xxh3:") ? 5 : 0);
  line.run.expect = ParseDigest(hex);
  if (line.run.expect.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "expected an identity, xxh3: and 32 hexadecimal digits, as pack prints it");
}

Status StoreShardsRange(Text text, Line& line) {
  return Keep(ParseShardRange(text), &line.pack().worker.range);
}

// How many, or with --plan, which may come later on the command line, which ones.
Status StoreShards(Text text, Line& line) {
  line.pack().worker.shards = text;
  if (text.find_first_of(",-") != std::string::npos) return absl::OkStatus();
  // Shard 0 exists, a dataset of 0 shards does not: see CheckWords.
  return Keep(ParseCount(text), &Request(line).plan.shards);
}

Status StoreWorker(Text text, Line& line) {
  line.pack().worker.part = text;
  if (text == "auto") return absl::OkStatus();
  const size_t slash = text.find('/');
  const auto part = ParseCount(text.substr(0, slash)),
             parts = ParseCount(slash == std::string::npos ? "" : text.substr(slash + 1));
  if (part.ok() && parts.ok() && *part >= 1 && *part <= *parts && *parts <= 1'000'000)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      "expected a part and their number, as in 2/8 (from 1/8 to 8/8), or auto");
}

Status StoreStaleAfter(Text text, Line& line) {
  const absl::StatusOr<double> seconds = ParseDuration(text);
  if (seconds.ok() && *seconds <= 0)
    return absl::InvalidArgumentError("expected more than 0 seconds");
  return Keep(seconds, &line.pack().worker.stale_seconds);
}

Status StoreSubset(Text text, Line& line) {
  const size_t slash = text.find('/');
  const absl::StatusOr<uint64_t> part = ParseCount(std::string_view(text).substr(0, slash));
  const absl::StatusOr<uint64_t> parts = slash == std::string::npos
                                             ? absl::InvalidArgumentError("")
                                             : ParseCount(text.substr(slash + 1));
  if (!part.ok() || !parts.ok() || *part < 1 || *part > *parts) {
    return absl::InvalidArgumentError("expected n/t with n from 1 to t, as in 1/7");
  }
  line.validate().subset = *part;
  line.validate().subsets = *parts;
  return absl::OkStatus();
}

Status StoreShardSize(Text text, Line& line) {
  Request(line).plan.shard_bytes = 0;  // the plan decides
  return text == "auto" ? absl::OkStatus()
                        : KeepAtLeastOne(ParseSize(text), &Request(line).plan.shard_bytes);
}

Status StoreMaxAspect(Text text, Line& line) {
  const absl::StatusOr<double> ratio = ParseNumber(text);
  if (!ratio.ok() || *ratio < 1)
    return absl::InvalidArgumentError("expected a ratio of 1 or more, as in 4");
  Request(line).plan.max_aspect = *ratio;
  return absl::OkStatus();
}

Status StoreThumbs(Text text, Line& line) {
  const absl::StatusOr<uint64_t> thumbs = ParseCount(text);
  if (!thumbs.ok() || *thumbs > 64)
    return absl::InvalidArgumentError("expected a number of pictures from 0 to 64");
  line.look().thumbs = *thumbs;
  return absl::OkStatus();
}

// Another ending is refused, because the word after --report may have been meant for something
// else.
Status StoreReport(Text text, Line& line) {
  std::optional<std::string>& report = line.pack().report;
  if (text == "false") {  // of a config file
    report.reset();
  } else if (text.empty() || text == "true") {
    report = "";
  } else if (text.ends_with(".html") || text.ends_with(".htm")) {
    report = text;
  } else {
    return absl::InvalidArgumentError(
        "expected a name that ends in .html; without one, give --report last");
  }
  return absl::OkStatus();
}

Status StorePageBytes(Text text, Line& line) {
  const absl::StatusOr<uint64_t> bytes = ParseSize(text);
  if (!bytes.ok() || *bytes < 100'000 || *bytes > 1'000'000'000)
    return absl::InvalidArgumentError("expected a size from 100kB to 1GB");
  line.look().max_bytes = *bytes;
  return absl::OkStatus();
}

Status StoreDistance(Text text, Line& line) {
  const absl::StatusOr<uint64_t> bits = ParseCount(text);
  if (!bits.ok() || *bits > uint64_t{kMaxNearDistance})
    return absl::InvalidArgumentError("expected a number of bits from 0 to 16");
  line.look().distance = static_cast<int>(*bits);
  return absl::OkStatus();
}

// "256", "224x160".
Status StoreSize(Text text, Line& line) {
  const size_t mark = text.find('x');
  const absl::StatusOr<uint64_t> width = ParseCount(text.substr(0, mark));
  const absl::StatusOr<uint64_t> height =
      mark == std::string::npos ? width : ParseCount(text.substr(mark + 1));
  if (!width.ok() || !height.ok() || *width < 1 || *height < 1 || *width > 65535 ||
      *height > 65535) {
    return absl::InvalidArgumentError("expected pixels from 1 to 65535, as in 256 or 224x160");
  }
  Request(line).plan.pixels.width = static_cast<uint32_t>(*width);
  Request(line).plan.pixels.height = static_cast<uint32_t>(*height);
  return absl::OkStatus();
}

Status StoreQuality(Text text, Line& line) {
  uint32_t quality = 0;
  const Status kept = KeepBelow(text, 100, &quality);
  Request(line).plan.pixels.quality = static_cast<uint8_t>(quality);
  return kept;
}

// keep, drop, or the background color: "#ffffff".
Status StoreAlpha(Text text, Line& line) {
  TransformOptions& pixels = Request(line).plan.pixels;
  pixels.alpha = text == "keep"   ? AlphaChange::kKeep
                 : text == "drop" ? AlphaChange::kDrop
                                  : AlphaChange::kBlend;
  if (pixels.alpha != AlphaChange::kBlend) return absl::OkStatus();
  const bool hex = text.size() == 7 && text[0] == '#' &&
                   text.find_first_not_of("0123456789abcdefABCDEF", 1) == std::string::npos;
  if (!hex)
    return absl::InvalidArgumentError(
        "expected keep, drop or a color to blend onto, as in #ffffff");
  pixels.background = static_cast<uint32_t>(std::stoul(text.substr(1), nullptr, 16));
  return absl::OkStatus();
}

Status StoreMaxFileSize(Text text, Line& line) {
  const Status kept = KeepAtLeastOne(ParseSize(text), &Request(line).plan.max_file_bytes);
  Request(line).source.max_file_bytes = Request(line).plan.max_file_bytes;
  return kept;
}

Status StoreSplitBy(Text text, Line& line) {
  Request(line).source.split_from_dir = text == "dir";
  Request(line).one_split = text == "none";
  return KeepWord(Request(line).one_split ? "hash" : text, &Request(line).plan.split_by);
}

std::vector<std::string> FormatNames() {
  std::vector<std::string> names;
  for (const Format* format : AllFormats()) names.emplace_back(format->name);
  return names;
}

std::vector<std::string> LayoutNames() {
  std::vector<std::string> names;
  for (const Format* format : AllFormats()) {
    for (const LayoutSpec& layout : format->layouts) {
      if (std::find(names.begin(), names.end(), layout.name) == names.end())
        names.emplace_back(layout.name);
    }
  }
  return names;
}

std::vector<std::string> SidecarNames() {
  std::vector<std::string> names;
  for (const Format* format : AllFormats()) {
    for (const SidecarSpec& sidecar : format->sidecars) {
      if (std::find(names.begin(), names.end(), sidecar.name) == names.end())
        names.emplace_back(sidecar.name);
    }
  }
  return names;
}

constexpr auto kSwitch = FlagKind::kSwitch;
constexpr auto kNegatable = FlagKind::kNegatable;
constexpr auto kValue = FlagKind::kValue;
constexpr auto kRepeated = FlagKind::kRepeated;
constexpr auto kOptional = FlagKind::kOptional;
constexpr Verb kValidate = Verb::kValidate, kRepair = Verb::kRepair, kBench = Verb::kBench;

// clang-format off
// name, letter, kind, value, default, allowed, group, verbs, common, doc, store, old name
constexpr Flag kFlags[] = {
    // Output
    {"out", 'o', kValue, "DIR", "", nullptr, "Output", kMaking, true,
     "where the dataset goes: a folder, new or of the same run",
     [](Text t, Line& l) { return KeepText(t, &l.pack().out); }},
    {"out", 'o', kValue, "DIR", "next to the shards", nullptr, "Output", In(Verb::kIndex), true,
     "where manifest and indexes go: a folder, new or of the same shards",
     [](Text t, Line& l) { return KeepText(t, &l.index().out); }},
    {"out", 'o', kValue, "DIR", "", nullptr, "Output", In(Verb::kExtract), true,
     "where the files go: a folder, new or empty; the last argument where this is not given",
     [](Text t, Line& l) { return KeepText(t, &l.samples().out); }},
    {"out", 'o', kValue, "FILE", "", nullptr, "Output", In(Verb::kReport), true,
     "where the page goes; only such a page is replaced",
     [](Text t, Line& l) { return KeepText(t, &l.look().out); }},
    {"validation", 0, kValue, "FILE", "", nullptr, "Output", In(Verb::kReport), true,
     "also show this result of pack validate --json",
     [](Text t, Line& l) { return KeepText(t, &l.look().validation); }},
    {"thumbs", 0, kValue, "N", "8", nullptr, "Output", In(Verb::kReport), true,
     "pictures of each class, 0 to 64",
     StoreThumbs},
    {"max-bytes", 0, kValue, "SIZE", "3MB", nullptr, "Output", In(Verb::kReport), true,
     "the largest page, at least 100kB; there are fewer and smaller pictures where they do not fit",
     StorePageBytes},
    {"list", 0, kValue, "FILE", "", nullptr, "Output", In(Verb::kExtract), true,
     "also write a csv of the images and their classes, and FILE.classes for --classes: with both, packing again gives the same labels",
     [](Text t, Line& l) { return KeepText(t, &l.samples().list); }},
    {"format", 'f', kValue, "FORMAT", kFirst, FormatNames, "Output", kMaking, true,
     "the format of the shards",
     [](Text t, Line& l) { return KeepText(t, &Request(l).format); }},
    {"layout", 0, kValue, "NAME", "the format's first", LayoutNames, "Output", kMaking, false,
     "the variant of the format; tfds calls every dataset \"dataset\"",
     [](Text t, Line& l) { return KeepText(t, &Request(l).plan.layout); }},
    {"shard-size", 0, kValue, "auto|SIZE", "auto", nullptr, "Output", kMaking, true,
     "the largest shard (100MB, 1GiB); auto: at most 256MB",
     StoreShardSize},
    {"samples-per-shard", 0, kValue, "N", "", nullptr, "Output", kMaking, false,
     "no shard with more samples than this",
     [](Text t, Line& l) { return KeepAtLeastOne(ParseCount(t), &Request(l).plan.samples_per_shard); }},
    {"shards", 0, kValue, "N", "", nullptr, "Output", In(Verb::kPlan) | In(Verb::kConvert), true,
     "this many shards in all, whatever their size",
     [](Text t, Line& l) { return KeepAtLeastOne(ParseCount(t), &Request(l).plan.shards); }},
    {"shards", 0, kValue, "N|LIST", "", nullptr, "Output", In(Verb::kBuild), true,
     "how many shards; with --plan: which ones, as in 3,7-9",
     StoreShards},
    {"key", 0, kValue, "auto|path|index", "auto", nullptr, "Output", kMaking, false,
     "how samples are named: by their path, by number, or by path where every reader takes it",
     [](Text t, Line& l) { return KeepWord(t, &Request(l).plan.key); }},
    {"image-field", 0, kValue, "NAME", "", nullptr, "Output", kMaking, false,
     "one name for the image in every sample, not the extension of its content",
     [](Text t, Line& l) { return KeepText(t, &Request(l).plan.image_field); }},
    {"with-json", 0, kSwitch, "", "", nullptr, "Output", kMaking, false,
     "add a json field with file name, label, class, width and height",
     [](Text t, Line& l) { return KeepSwitch(t, &Request(l).plan.with_metadata); }},
    {"sidecar-index", 0, kRepeated, "TOOL,...", "", SidecarNames, "Output", kMaking, false,
     "also write the index files of other tools",
     [](Text t, Line& l) { SplitAt(t, ',', &Request(l).plan.sidecar_indexes); return absl::OkStatus(); }},
    {"sha256", 0, kSwitch, "", "", nullptr, "Output", kMaking, false,
     "also write SHA256SUMS",
     [](Text t, Line& l) { return KeepSwitch(t, &Request(l).plan.sha256); }},
    {"report", 0, kOptional, "FILE", "OUT-report.html", nullptr, "Output", kPublishing, false,
     "also write a page that shows the dataset once it is published, as pack report",
     StoreReport},

    // Input
    {"input-format", 0, kValue, "auto|folder|list|csv|tsv|jsonl|coco|archive|dataset", "auto", nullptr, "Input", kPacking, false,
     "what SRC is, if its name does not show it; list: .lst, or lines of path and label",
     [](Text t, Line& l) { Request(l).input_format = t; return absl::OkStatus(); }},
    {"from", 0, kValue, "DIR", "", nullptr, "Input", In(Verb::kPlan), false,
     "in place of SRC: what pack list has written",
     [](Text t, Line& l) { return KeepText(t, &l.pack().lists); }},
    {"root", 0, kValue, "DIR", "the list's folder", nullptr, "Input", kPacking, false,
     "the folder that the paths of a list or of COCO json are relative to",
     [](Text t, Line& l) { return KeepText(t, &Request(l).root); }},
    {"columns", 0, kValue, "path=COL,label=COL,txt=COL,json=COL,...", "", nullptr, "Input", kPacking, false,
     "columns of csv, tsv, jsonl, by name or number: path, label, fields; json=*: all others",
     [](Text t, Line& l) { return ParseColumns(t, &Request(l).columns); }},
    {"coco", 0, kValue, "full|boxes", "full", nullptr, "Input", kPacking, false,
     "the json field of COCO json: image and annotations whole, or boxes alone",
     [](Text t, Line& l) { Request(l).coco_boxes = t == "boxes"; return absl::OkStatus(); }},
    {"annotations", 0, kRepeated, "FILE", "", nullptr, "Input", kPacking, false,
     "further COCO json of the same images (captions, keypoints), joined by image id; may be repeated",
     [](Text t, Line& l) { Request(l).annotations.push_back(t); return absl::OkStatus(); }},
    {"label-from", 0, kValue, "HOW", "dir", nullptr, "Input", kPacking, true,
     "the class: dir, dir:N, none; column; largest, single",
     StoreLabelFrom},
    {"label-from", 0, kValue, "cls", "", nullptr, "Input", In(Verb::kConvert), false,
     "the class: the text of .cls where it is not a number",
     StoreLabelFrom},
    {"fields", 0, kValue, "EXT[:FIELD],...", "", nullptr, "Input", kListing, false,
     "further fields from files of the image's name: json,txt,png:mask",
     [](Text t, Line& l) { return Keep(ParseSidecars(t), &Request(l).source.sidecars); }, "sidecars"},
    {"missing-part", 0, kValue, "skip|error|drop|keep", "skip", nullptr, "Input", kMaking, false,
     "a sample without one of its parts: skip and list it, stop, leave the part out of all, or of this one",
     [](Text t, Line& l) { return KeepChoice(t, {"skip", "error", "drop", "keep"}, &Request(l).source.missing); }},
    {"drop-fields", 0, kSwitch, "", "", nullptr, "Input", kMaking, false,
     "leave out the fields that the format cannot hold",
     [](Text t, Line& l) { return KeepSwitch(t, &Request(l).drop_fields); }},
    {"classes", 0, kValue, "FILE", "", nullptr, "Input", kPacking, false,
     "the classes, one a line, in this order; other folders are an error",
     [](Text t, Line& l) { return KeepText(t, &l.pack().classes_file); }},
    {"classes", 0, kValue, "FILE", "", nullptr, "Input", In(Verb::kConvert), false,
     "with --label-from cls: the classes, one a line, in this order; another text is an error",
     [](Text t, Line& l) { return KeepText(t, &l.pack().classes_file); }},
    {"classes", 0, kValue, "FILE", "", nullptr, "Input", In(Verb::kIndex), true,
     "names of the labels 0, 1, ..., one a line; the shards hold numbers",
     [](Text t, Line& l) { return KeepText(t, &l.index().classes_file); }},
    {"class-order", 0, kValue, "lexical|natural", "lexical", nullptr, "Input", kPacking, false,
     "the order that numbers the classes: by bytes, as torchvision, or 2 before 10",
     [](Text t, Line& l) { return KeepChoice(t, {"lexical", "natural"}, &Request(l).source.class_order); }},
    {"ext", 0, kRepeated, "jpg,png,...", "images", nullptr, "Input", kListing, false,
     "files with these extensions count as inputs; any for all files",
     StoreExtensions},
    {"include", 0, kRepeated, "GLOB", "", nullptr, "Input", kListing, false,
     "only paths that match, relative to SRC; may be repeated",
     [](Text t, Line& l) { Request(l).source.include.push_back(t); return absl::OkStatus(); }},
    {"exclude", 0, kRepeated, "GLOB", "", nullptr, "Input", kListing, false,
     "no paths that match, relative to SRC; may be repeated",
     [](Text t, Line& l) { Request(l).source.exclude.push_back(t); return absl::OkStatus(); }},
    {"follow", 0, kSwitch, "", "", nullptr, "Input", kListing, false,
     "also follow links that leave SRC; those to files and folders within SRC are always followed",
     [](Text t, Line& l) { return KeepSwitch(t, &Request(l).source.follow); }},
    {"exclude-keys", 0, kValue, "FILE", "", nullptr, "Input", In(Verb::kPlan) | In(Verb::kConvert), false,
     "of a dataset: leave out the samples with these keys, a list of pack dups --write-list",
     [](Text t, Line& l) { return KeepText(t, &l.pack().exclude_keys_file); }},
    {"limit", 0, kValue, "N", "", nullptr, "Input", kMaking, false,
     "pack at most this many samples",
     [](Text t, Line& l) { return KeepAtLeastOne(ParseCount(t), &Request(l).plan.limit); }},
    {"min-size", 0, kValue, "PIXELS", "", nullptr, "Input", kMaking, false,
     "leave out images with a side shorter than this",
     [](Text t, Line& l) {
       const absl::StatusOr<uint64_t> side = ParseCount(t);
       if (!side.ok() || *side > std::numeric_limits<uint32_t>::max()) return Status(absl::InvalidArgumentError("expected a number of pixels, as in 32"));
       return Keep(side, &Request(l).plan.min_side);
     }},
    {"max-aspect", 0, kValue, "RATIO", "", nullptr, "Input", kMaking, false,
     "leave out images whose longer side is more than RATIO times the shorter",
     StoreMaxAspect},
    {"dedupe", 0, kValue, "off|report|drop", "off", nullptr, "Input", kMaking, false,
     "files with equal bytes: pack all, say so, or keep the first",
     [](Text t, Line& l) { return KeepWord(t, &Request(l).plan.dedupe); }},

    // Order
    {"split", 0, kValue, "NAME=SHARE,...", "", nullptr, "Order", kMaking, true,
     "divide the samples, as in train=0.9,val=0.1",
     [](Text t, Line& l) { return Keep(ParseSplits(t), &Request(l).plan.splits); }},
    {"split", 0, kValue, "NAME", "", nullptr, "Order", In(Verb::kIndex), true,
     "the split of all shards, whatever their names say",
     [](Text t, Line& l) { return KeepText(t, &l.index().split); }},
    {"split-by", 0, kValue, "hash|random|stratified|dir|none", "dir where folders are named train, val, test; else hash", nullptr, "Order", kMaking, false,
     "hash: path and seed decide, shares are averages; random, stratified: exact shares, of all or per class; dir: the first "
     "folder; none: one split",
     StoreSplitBy},
    {"shuffle", 0, kNegatable, "", "on", nullptr, "Order", kMaking, true,
     "shuffle the samples (class-sorted shards train badly)",
     [](Text t, Line& l) { return KeepSwitch(t, &Request(l).plan.shuffle); }},
    {"seed", 0, kValue, "N", "0", nullptr, "Order", kMaking, false,
     "of the shuffle and of the split",
     [](Text t, Line& l) { return Keep(ParseCount(t), &Request(l).plan.seed); }},
    {"seed", 0, kValue, "N", "0", nullptr, "Order", In(kBench), false,
     "of the shuffle and of the split",
     [](Text t, Line& l) { return Keep(ParseCount(t), &l.bench().seed); }},

    // Pixels
    {"resize", 0, kValue, "shortest|longest|exact|crop|pad", "", nullptr, "Pixels", kMaking, false,
     "resize: a side to --size, or to WxH: whatever the ratio, cut, or with bars",
     [](Text t, Line& l) { return KeepWord(t, &Request(l).plan.pixels.resize); }},
    {"size", 0, kValue, "N|WxH", "", nullptr, "Pixels", kMaking, false,
     "what --resize resizes to, in pixels",
     StoreSize},
    {"only-if-bigger", 0, kSwitch, "", "", nullptr, "Pixels", kMaking, false,
     "--resize enlarges nothing",
     [](Text t, Line& l) { return KeepSwitch(t, &Request(l).plan.pixels.only_if_bigger); }},
    {"interpolation", 0, kValue, "auto|area|bilinear|bicubic|lanczos", "auto", nullptr, "Pixels", kMaking, false,
     "the filter of --resize, always antialiased; auto: bilinear, and bicubic to enlarge",
     [](Text t, Line& l) { return KeepWord(t, &Request(l).plan.pixels.interpolation); }},
    {"exact", 0, kSwitch, "", "", nullptr, "Pixels", kMaking, false,
     "decode JPEGs at full scale even where a half or less is twice the size asked for",
     [](Text t, Line& l) { return KeepSwitch(t, &Request(l).plan.pixels.exact); }},
    {"encode", 0, kValue, "keep|jpg|png|webp|raw", "keep", nullptr, "Pixels", kMaking, false,
     "the format of images; raw: samples of 8 bits without a header",
     [](Text t, Line& l) { return KeepWord(t, &Request(l).plan.pixels.encode); }},
    {"quality", 0, kValue, "1-100", "95", nullptr, "Pixels", kMaking, false,
     "of the JPEGs and WebPs that are re-encoded",
     StoreQuality},
    {"color", 0, kValue, "keep|rgb|gray", "keep", nullptr, "Pixels", kMaking, false,
     "make all images RGB, or gray",
     [](Text t, Line& l) { return KeepWord(t, &Request(l).plan.pixels.color); }},
    {"compute-stats", 0, kSwitch, "", "", nullptr, "Pixels", kMaking, false,
     "mean and standard deviation of all pixels, per channel, into the manifest",
     [](Text t, Line& l) { return KeepSwitch(t, &Request(l).plan.compute_stats); }},
    {"depth", 0, kValue, "keep|8", "keep", nullptr, "Pixels", kMaking, false,
     "8: bring samples of 16, 4, 2 or 1 bits to 8",
     [](Text t, Line& l) { return KeepChoice(t, {"keep", "8"}, &Request(l).plan.pixels.depth8); }},
    {"alpha", 0, kValue, "keep|drop|#RRGGBB", "", nullptr, "Pixels", kMaking, false,
     "transparency: keep it, drop it, or blend onto a color; by itself: #ffffff where it cannot be kept",
     StoreAlpha},
    {"orient", 0, kValue, "bake|keep", "", nullptr, "Pixels", kMaking, false,
     "the EXIF orientation: turn the pixels, or keep the tag; by itself: bake what is re-encoded",
     [](Text t, Line& l) { return KeepWord(t, &Request(l).plan.pixels.orient); }},
    {"icc", 0, kValue, "srgb|keep", "", nullptr, "Pixels", kMaking, false,
     "color profiles: convert to sRGB, or keep them; by itself: srgb for what is re-encoded",
     [](Text t, Line& l) { return KeepWord(t, &Request(l).plan.pixels.profile); }},

    // Bad inputs
    {"verify", 0, kValue, "header|structure", "structure", nullptr, "Bad inputs", kMaking, false,
     "how far each image is looked into before it is packed",
     [](Text t, Line& l) { return KeepWord(t, &Request(l).plan.verify); }},
    {"allow-truncated", 0, kSwitch, "", "", nullptr, "Bad inputs", kMaking, false,
     "pack images that end early, and mark them",
     [](Text t, Line& l) { return KeepSwitch(t, &Request(l).plan.allow_truncated); }},
    {"max-pixels", 0, kValue, "N", "64000000", nullptr, "Bad inputs", kMaking, false,
     "skip images with more pixels than this",
     [](Text t, Line& l) { return KeepAtLeastOne(ParseCount(t), &Request(l).plan.max_pixels); }},
    {"max-file-size", 0, kValue, "SIZE", "256MiB", nullptr, "Bad inputs", kMaking | In(Verb::kList), false,
     "skip files larger than this",
     StoreMaxFileSize},
    {"on-duplicate-key", 0, kValue, "auto|error|suffix|skip", "auto", nullptr, "Bad inputs", kMaking, false,
     "two inputs of one key: stop, add a number, or skip the second; auto: add one, but stop at masks",
     [](Text t, Line& l) { return KeepWord(t, &Request(l).plan.on_duplicate); }},
    {"max-skip", 0, kValue, "SHARE", "1%", nullptr, "Bad inputs", kPublishing, true,
     "publish nothing when more inputs are bad",
     [](Text t, Line& l) { return Keep(ParseShare(t), &l.pack().max_skip); }},
    {"strict", 0, kSwitch, "", "", nullptr, "Bad inputs", kPublishing, false,
     "the same as --max-skip 0",
     [](Text t, Line& l) { if (t == "true") l.pack().max_skip = 0; return absl::OkStatus(); }},

    // Check
    {"level", 0, kValue, "quick|full|deep", "full", nullptr, "Check", In(kValidate), true,
     "how deep to look",
     [](Text t, Line& l) { return KeepText(t, &l.validate().level); }},
    {"level", 0, kValue, "quick|full", "full", nullptr, "Check", In(kRepair), true,
     "how to look for damage: at sizes alone, or at every byte",
     [](Text t, Line& l) { return KeepText(t, &l.repair().level); }},
    {"from", 0, kRepeated, "PATH", "the source in the manifest", nullptr, "Input", In(kRepair), true,
     "the source where it is now, or a copy of the dataset in any format; may be repeated",
     [](Text t, Line& l) { l.repair().from.push_back(t); return t.empty() ? Status(absl::InvalidArgumentError("expected a path")) : absl::OkStatus(); }},
    {"subset", 0, kValue, "N/T", "1/1", nullptr, "Check", In(kValidate), true,
     "the Nth of T equal parts of the shards, to check all of them in T runs",
     StoreSubset},
    {"sample", 0, kValue, "SHARE", "100%", nullptr, "Check", In(kValidate), true,
     "a share of the records, spread over all shards",
     [](Text t, Line& l) { return Keep(ParseShare(t), &l.validate().sample); }},
    {"max-duration", 0, kValue, "TIME", "", nullptr, "Check", In(kValidate), true,
     "begin no further shard after this long: 90s, 5m, 1h",
     [](Text t, Line& l) { return Keep(ParseDuration(t), &l.validate().max_seconds); }},
    {"against", 0, kValue, "SRC", "", nullptr, "Check", In(kValidate), true,
     "also compare every sample with the source, and name what the dataset lacks",
     [](Text t, Line& l) { return KeepText(t, &l.validate().against); }},

    {"check", 0, kSwitch, "", "", nullptr, "Check", kLooking, true,
     "exit code 8 if something is found",
     [](Text t, Line& l) { return KeepSwitch(t, &l.look().check); }},
    {"by", 0, kValue, "key|path|hash", "key", nullptr, "Check", In(Verb::kDiff), true,
     "which samples are the same: those of one key, one source path, or one image",
     [](Text t, Line& l) { return KeepChoice(t, {"key", "path", "hash"}, &l.look().by); }},
    {"near", 0, kSwitch, "", "", nullptr, "Check", kCopies, true,
     "also find images that look alike, by a perceptual hash",
     [](Text t, Line& l) { return KeepSwitch(t, &l.look().near); }},
    {"distance", 0, kValue, "BITS", "6", nullptr, "Check", kCopies, true,
     "with --near: how many of the 64 bits may differ, 0 to 16",
     StoreDistance},
    {"decode", 0, kSwitch, "", "", nullptr, "Check", In(Verb::kStats), true,
     "also decode every image: notes of those that do not decode, or are of one color",
     [](Text t, Line& l) { return KeepSwitch(t, &l.look().decode); }},
    {"write-list", 0, kValue, "FILE", "", nullptr, "Check", In(Verb::kDups), true,
     "write the keys of the first dataset's samples that are copies, one a line, to leave them out",
     [](Text t, Line& l) { return KeepText(t, &l.look().write_list); }},

    // Select
    {"split", 0, kValue, "NAME", "", nullptr, "Select", kSelecting, true,
     "samples of this split alone",
     [](Text t, Line& l) { return KeepText(t, &l.samples().split); }},
    {"split", 0, kValue, "NAME", "", nullptr, "Select", In(kBench), true,
     "samples of this split alone",
     [](Text t, Line& l) { return KeepText(t, &l.bench().split); }},
    {"label", 0, kValue, "NAME|N", "", nullptr, "Select", kSelecting, true,
     "samples of this class alone, by name or number",
     [](Text t, Line& l) { l.samples().label = t; return absl::OkStatus(); }},
    {"limit", 0, kValue, "N", "", nullptr, "Select", kSelecting, true,
     "at most this many samples",
     [](Text t, Line& l) { return KeepAtLeastOne(ParseCount(t), &l.samples().limit); }},
    {"long", 'l', kSwitch, "", "", nullptr, "Select", In(Verb::kLs), true,
     "also shard, record, image format and hash",
     [](Text t, Line& l) { return KeepSwitch(t, &l.samples().long_rows); }},
    {"record", 0, kValue, "N", "", nullptr, "Select", In(Verb::kCat), true,
     "the Nth sample, from 0, in place of a key",
     [](Text t, Line& l) { uint64_t n = 0; const Status kept = Keep(ParseCount(t), &n); l.samples().record = n; return kept; }},
    {"field", 0, kValue, "NAME", "image", nullptr, "Select", In(Verb::kCat), true,
     "this field of the sample; pack info names them",
     [](Text t, Line& l) { return KeepText(t, &l.samples().field); }},
    {"gpu", 0, kSwitch, "", "", nullptr, "Select", In(Verb::kInfo), true,
     "also say which GPUs and libraries a loader would use here, and why not; needs no dataset",
     [](Text t, Line& l) { return KeepSwitch(t, &l.samples().gpu); }},
    {"force", 0, kSwitch, "", "", nullptr, "Select", In(Verb::kCat), true,
     "write the bytes even to a terminal",
     [](Text t, Line& l) { return KeepSwitch(t, &l.samples().force); }},

    // Load
    {"batch", 'b', kValue, "N", "256", nullptr, "Load", In(kBench), true,
     "samples per batch",
     [](Text t, Line& l) { return KeepBelow(t, 1 << 20, &l.bench().batch); }},
    {"epochs", 0, kValue, "N", "3", nullptr, "Load", In(kBench), true,
     "how often the dataset is read",
     [](Text t, Line& l) { return KeepAtLeastOne(ParseCount(t), &l.bench().epochs); }},
    {"order", 0, kValue, "sequential|shuffle|blocks", "shuffle", nullptr, "Load", In(kBench), true,
     "in order, shuffled as a whole, or by blocks for slow disks",
     [](Text t, Line& l) { return KeepChoice(t, {"sequential", "shuffle", "blocks"}, &l.bench().order); }},
    {"device", 0, kValue, "cpu|cuda|host", "cpu", nullptr, "Load", In(kBench), true,
     "where batches go: cpu, cuda, or host: the GPU path with host memory",
     [](Text t, Line& l) { return KeepChoice(t, {"cpu", "cuda", "host"}, &l.bench().device); }},
    {"rate", 0, kValue, "N", "1786", nullptr, "Load", In(kBench), false,
     "images per second of a consumer on --device whose waits are counted; 0: none",
     [](Text t, Line& l) { return Keep(ParseCount(t), &l.bench().rate); }},
    {"decode", 0, kValue, "PIXELS", "", nullptr, "Load", In(kBench), true,
     "decode to squares of this side, by a random resized crop and a flip",
     [](Text t, Line& l) { return KeepBelow(t, 1 << 14, &l.bench().decode_size); }},
    {"verify", 0, kNegatable, "", "on", nullptr, "Load", In(kBench), true,
     "check every image against its hash",
     [](Text t, Line& l) { return KeepSwitch(t, &l.bench().check_hashes); }},

    // Workers
    {"worker", 0, kValue, "I/N|auto", "", nullptr, "Workers", In(Verb::kBuild), false,
     "with --plan: part I of N of the shards, from 1/N to N/N; auto: as the cluster's job array says; pack commit then publishes",
     StoreWorker},
    {"join", 0, kSwitch, "", "", nullptr, "Workers", In(Verb::kBuild), false,
     "with --plan: build what no other worker holds, until all shards are done; with --worker: after its part",
     [](Text t, Line& l) { return KeepSwitch(t, &l.pack().worker.join); }},
    {"join", 0, kSwitch, "", "", nullptr, "Workers", In(Verb::kList), true,
     "help with a list that others have begun, or go on with it; the process that begins the list may also have it",
     [](Text t, Line& l) { return KeepSwitch(t, &l.pack().worker.join); }},
    {"wait", 0, kNegatable, "", "", nullptr, "Workers", In(Verb::kBuild), false,
     "with --no-wait a worker ends with 7 if others hold the rest of its shards",
     [](Text t, Line& l) { return KeepSwitch(t, &l.pack().worker.wait); }},
    {"takeover", 0, kValue, "stale|now", "stale", nullptr, "Workers", In(Verb::kBuild), false,
     "whether a worker builds shards that others hold once these are dead, or at once",
     [](Text t, Line& l) { l.pack().worker.take_over = t == "now"; return absl::OkStatus(); }},
    {"stale-after", 0, kValue, "TIME", "60s", nullptr, "Workers", In(Verb::kBuild) | In(Verb::kList), false,
     "how long another worker may stand still before it counts as dead; the same for all workers",
     StoreStaleAfter},
    {"stop-with-stdin", 0, kSwitch, "", "", nullptr, "Workers", In(Verb::kBuild), false,
     "stop, as by SIGTERM, when standard input ends: with the program that started this one",
     [](Text t, Line& l) { return KeepSwitch(t, &l.pack().worker.stop_with_stdin); }},
    {"shards-range", 0, kValue, "A-B", "", nullptr, "Workers", In(Verb::kBuild), false,
     "with --plan: only the shards A to B, from 0, both included; the same as --shards A-B",
     StoreShardsRange},

    // Run
    {"jobs", 'j', kValue, "N", "the cores", nullptr, "Run", kBuilding | In(Verb::kIndex) | In(kValidate) | In(kRepair) | In(Verb::kDups) | In(Verb::kReport) | In(kBench), true,
     "threads that compute",
     [](Text t, Line& l) { return KeepThreads(t, &l.run.jobs); }},
    {"io-depth", 0, kValue, "N", "32", nullptr, "Run", kMaking | In(Verb::kList) | In(Verb::kCommit) | In(kRepair) | In(kBench), false,
     "reads outstanding at once",
     [](Text t, Line& l) { return KeepThreads(t, &l.run.io_depth); }},
    {"memory", 0, kValue, "SHARE|SIZE", "25%", nullptr, "Run", kBuilding | In(kRepair), false,
     "ceiling for the samples in flight: a share of the memory, or a size",
     StoreMemory},
    {"overwrite", 0, kSwitch, "", "", nullptr, "Run", kBuilding, false,
     "replace a dataset in OUT, at the very end",
     [](Text t, Line& l) { return KeepSwitch(t, &l.pack().output.overwrite); }},
    {"compare", 0, kSwitch, "", "", nullptr, "Run", kBuilding, false,
     "where OUT is finished: compare the source's bytes, not its times, and keep OUT if all are the same",
     [](Text t, Line& l) { return KeepSwitch(t, &l.pack().output.compare); }},
    {"overwrite", 0, kSwitch, "", "", nullptr, "Run", In(Verb::kIndex), true,
     "replace the manifest and the indexes of shards that have changed",
     [](Text t, Line& l) { return KeepSwitch(t, &l.index().overwrite); }},
    {"dry-run", 'n', kSwitch, "", "", nullptr, "Run", kBuilding, false,
     "show the plan and stop; the same as pack plan",
     [](Text t, Line& l) { return KeepSwitch(t, &l.pack().dry_run); }},
    {"dry-run", 'n', kSwitch, "", "", nullptr, "Run", In(kRepair), true,
     "say what is damaged and where it would come from, and write nothing",
     [](Text t, Line& l) { return KeepSwitch(t, &l.repair().dry_run); }},
    {"write", 0, kValue, "FILE", "", nullptr, "Run", In(Verb::kPlan), true,
     "write the plan to a file for build --plan",
     [](Text t, Line& l) { return KeepText(t, &l.pack().write_plan); }},
    {"write", 0, kValue, "DIR", "", nullptr, "Run", In(Verb::kList), true,
     "the folder for the lists: a new one, or with --join that of the same list",
     [](Text t, Line& l) { return KeepText(t, &l.pack().write_plan); }},
    {"slurm", 0, kValue, "DIR", "", nullptr, "Run", In(Verb::kPlan), false,
     "with --write and -o: write build.sbatch and commit.sbatch, jobs for Slurm",
     [](Text t, Line& l) { return KeepText(t, &l.pack().slurm_folder); }},
    {"k8s", 0, kValue, "DIR", "", nullptr, "Run", In(Verb::kPlan), false,
     "with --write and -o: write build.yaml and commit.yaml, jobs for Kubernetes",
     [](Text t, Line& l) { return KeepText(t, &l.pack().k8s_folder); }},
    {"tasks", 0, kValue, "N", "", nullptr, "Run", In(Verb::kPlan), false,
     "how many workers these jobs have; without it one a shard, at most 64",
     [](Text t, Line& l) { return KeepAtLeastOne(ParseCount(t), &l.pack().tasks); }},
    {"plan", 0, kValue, "FILE", "", nullptr, "Run", In(Verb::kBuild), false,
     "build what pack plan --write has planned; SRC then says where the source is on this machine",
     [](Text t, Line& l) { return KeepText(t, &l.pack().plan_file); }},
    {"plan", 0, kValue, "FILE", "", nullptr, "Run", In(Verb::kStatus), true,
     "the plan that OUT is to be of; it may be that no worker has begun there yet",
     [](Text t, Line& l) { return KeepText(t, &l.status().plan_file); }},
    {"wait", 0, kSwitch, "", "", nullptr, "Run", In(Verb::kStatus), true,
     "until all shards are done",
     [](Text t, Line& l) { return KeepSwitch(t, &l.status().wait); }},
    {"no-fsync", 0, kSwitch, "", "", nullptr, "Run", kPublishing | In(Verb::kIndex) | In(kRepair), false,
     "do not wait for the disk: faster, and not safe against a power failure",
     [](Text t, Line& l) { l.run.fsync = t != "true"; return absl::OkStatus(); }},
    {"expect", 0, kValue, "IDENTITY", "", nullptr, "Run", kPublishing | In(kValidate) | In(kRepair), false,
     "fail unless the dataset has this identity (xxh3:...)",
     StoreExpect},
    {"config", 0, kValue, "FILE", "", nullptr, "Run", kMaking, false,
     "flags from a TOML or INI file; those of the command line win",
     [](Text t, Line& l) { return KeepText(t, &l.config); }},
    {"progress", 0, kValue, "auto|always|never|json", "auto", nullptr, "Run", kLong | In(Verb::kStats), false,
     "how progress is shown on stderr",
     [](Text t, Line& l) { return KeepChoice(t, {"auto", "always", "never", "json"}, &l.progress); }},
    {"json", 0, kSwitch, "", "", nullptr, "Run", kLong | kReading | kLooking | In(kBench) | In(Verb::kStatus), true,
     "the result as JSON on stdout",
     [](Text t, Line& l) { return KeepSwitch(t, &l.json); }},
    {"as", 0, kValue, "roff|markdown", "roff", nullptr, "Run", In(Verb::kMan), true,
     "the manual page, or the reference part of docs/cli.md",
     [](Text t, Line& l) { l.print().markdown = t == "markdown"; return absl::OkStatus(); }},
    {"quiet", 'q', kSwitch, "", "", nullptr, "Run", kLong | kLooking | In(Verb::kInfo) | In(Verb::kStatus), false,
     "no progress and no summary, only warnings and errors",
     [](Text t, Line& l) { return KeepSwitch(t, &l.quiet); }},
    {"help", 'h', kSwitch, "", "", nullptr, "Run", kEveryVerb, true,
     "show this help",
     [](Text t, Line& l) { return KeepSwitch(t, &l.help); }},
    {"version", 'V', kSwitch, "", "", nullptr, "Run", kEveryVerb, false,
     "show the version and the libraries",
     [](Text t, Line& l) { return KeepSwitch(t, &l.version); }},
};
// clang-format on

}  // namespace

std::span<const Flag> AllFlags() { return kFlags; }

}  // namespace shardpack::cli
