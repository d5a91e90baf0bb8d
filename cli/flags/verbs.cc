#include "cli/flags/verbs.h"

#include <array>
#include <limits>

namespace shardpack::cli {
namespace {

constexpr size_t kAny = std::numeric_limits<size_t>::max();

// Of a run that a signal stops.
template <typename... Codes>
constexpr std::array<ExitCode, sizeof...(Codes) + 3> AndSignals(Codes... codes) {
  return {codes..., ExitCode::kHungUp, ExitCode::kInterrupted, ExitCode::kTerminated};
}

constexpr auto kConvertCodes = AndSignals(ExitCode::kDone, ExitCode::kUsage, ExitCode::kSkipped,
                                          ExitCode::kDamage, ExitCode::kConflict, ExitCode::kIo);
// Of workers and commits, too.
constexpr auto kBuildCodes =
    AndSignals(ExitCode::kDone, ExitCode::kUsage, ExitCode::kSkipped, ExitCode::kDamage,
               ExitCode::kConflict, ExitCode::kIo, ExitCode::kHeld);
constexpr auto kStatusCodes = AndSignals(ExitCode::kDone, ExitCode::kUsage, ExitCode::kDamage,
                                         ExitCode::kConflict, ExitCode::kIo, ExitCode::kHeld);
constexpr auto kListCodes = AndSignals(ExitCode::kDone, ExitCode::kUsage, ExitCode::kDamage,
                                       ExitCode::kConflict, ExitCode::kIo);
constexpr auto kPlanCodes = AndSignals(ExitCode::kDone, ExitCode::kUsage, ExitCode::kDamage,
                                       ExitCode::kConflict, ExitCode::kIo, ExitCode::kHeld);
constexpr auto kValidateCodes =
    AndSignals(ExitCode::kDone, ExitCode::kUsage, ExitCode::kDamage, ExitCode::kIo);
constexpr auto kRepairCodes = AndSignals(ExitCode::kDone, ExitCode::kUsage, ExitCode::kSkipped,
                                         ExitCode::kDamage, ExitCode::kConflict, ExitCode::kIo);
constexpr auto kIndexCodes = AndSignals(ExitCode::kDone, ExitCode::kUsage, ExitCode::kDamage,
                                        ExitCode::kConflict, ExitCode::kIo);
constexpr ExitCode kReadCodes[] = {ExitCode::kDone, ExitCode::kUsage, ExitCode::kDamage,
                                   ExitCode::kIo};
constexpr auto kLookCodes = AndSignals(ExitCode::kDone, ExitCode::kUsage, ExitCode::kDamage,
                                       ExitCode::kIo, ExitCode::kFound);
constexpr auto kDupsCodes = AndSignals(ExitCode::kDone, ExitCode::kUsage, ExitCode::kDamage,
                                       ExitCode::kConflict, ExitCode::kIo, ExitCode::kFound);
constexpr auto kReportCodes = AndSignals(ExitCode::kDone, ExitCode::kUsage, ExitCode::kDamage,
                                         ExitCode::kConflict, ExitCode::kIo);
constexpr auto kExtractCodes = AndSignals(ExitCode::kDone, ExitCode::kUsage, ExitCode::kSkipped,
                                          ExitCode::kDamage, ExitCode::kConflict, ExitCode::kIo);
constexpr ExitCode kPrintCodes[] = {ExitCode::kDone, ExitCode::kUsage, ExitCode::kIo};

constexpr std::array<VerbSpec, static_cast<size_t>(Verb::kCount)> kVerbs = {{
    {Verb::kBuild, "build",
     "Pack a folder or list of images into shards (the verb may be left out)", "SRC", 0, 1,
     "pack photos/ -o shards/ --split train=0.9,val=0.1",
     "SRC: folders of images, one a class; a list (.lst .txt .csv .tsv .jsonl, COCO .json, - for "
     "paths on\n"
     "stdin); an archive; a packed dataset. An interrupted build resumes when the command is "
     "repeated.",
     kBuildCodes},
    {Verb::kPlan, "plan",
     "Show what a build would do: shards, splits, size; or write that down for workers", "SRC", 0,
     1, "pack plan photos/ --shard-size 1GB --write photos.plan",
     "Takes the flags of build that say what is in the dataset; how a run goes (--jobs, --memory,\n"
     "--overwrite, ...) is for build. Workers then share the plan: `pack build --plan photos.plan "
     "-o "
     "OUT\n"
     "--worker 1/4` packs a quarter of the shards, and with --join then helps the others; `pack "
     "commit\n"
     "OUT` publishes the result.",
     kPlanCodes},
    {Verb::kList, "list", "List a large folder together with other processes, for pack plan --from",
     "SRC", 1, 1, "pack list photos/ --write lists/ --join",
     "The same command on each machine: they share the folders of SRC among themselves, and each "
     "ends when\n"
     "all are listed. `pack plan --from lists/` then plans as `pack plan photos/` would. DIR is "
     "a "
     "folder\n"
     "that all of them can reach.",
     kListCodes},
    {Verb::kStatus, "status", "Say how far the workers are that build a plan in a folder", "OUT", 1,
     1, "pack status shards/",
     "Exit code 0: all shards are done, or the dataset is published; 7: some are not. A shard is "
     "stale if\n"
     "the worker that holds it has ended or stands still; others that --join take it over.",
     kStatusCodes},
    {Verb::kCommit, "commit", "Publish a dataset whose shards were built by workers", "OUT", 1, 1,
     "pack commit shards/",
     "Checks that every shard of the plan is there and whole, then writes the manifest, which "
     "makes OUT a\ndataset.",
     kBuildCodes},
    {Verb::kConvert, "convert", "Pack a dataset, or shards of any tool, into another format",
     "DATASET|SHARD...", 1, kAny, "pack convert shards/ -o records/ -f tfrecord",
     "Bytes, labels, classes, keys, splits, source paths and further fields are kept, and so is "
     "the order,\n"
     "unless --shuffle is given. What the format cannot hold is reported before work starts.",
     kConvertCodes},
    {Verb::kIndex, "index",
     "Index third-party shards in place as a dataset, without packing them again", "SHARD|DIR...",
     1, kAny, "pack index imagenet-*.tar -o imagenet/",
     "Writes a manifest and an index for each shard, next to the shards or to the folder of -o; "
     "the shards\n"
     "stay as they are. Every byte is checked first; a damaged shard is refused, and nothing is "
     "written.\n"
     "Splits are those that all names begin with (train-, val-, test-), else there is one.",
     kIndexCodes},
    {Verb::kValidate, "validate", "Verify that a dataset, or shards of any tool, are whole",
     "DATASET|SHARD...", 1, kAny, "pack validate shards/",
     "quick looks at manifest, sizes, indexes and the ends of each shard; full at every byte;\n"
     "deep also decodes every image and enforces limits on pixels, JPEG scans and metadata.",
     kValidateCodes},
    {Verb::kRepair, "repair", "Rebuild what is missing or damaged of a dataset, byte for byte",
     "DATASET [SHARD...]", 1, kAny, "pack repair shards/ --from photos/",
     "Lost shards, indexes and other files come from the source that the manifest names, from "
     "another\n"
     "place of it, or from copies of the dataset in any format (--from, as often as needed), and "
     "from\n"
     "what is left. Only a file with the very hash of the manifest is put in its place; nothing "
     "else is\n"
     "touched. With names of shards or files, only those are checked.",
     kRepairCodes},
    {Verb::kInfo, "info", "Say what a dataset or a shard holds", "DATASET|SHARD...", 1, kAny,
     "pack info shards/", "", kReadCodes},
    {Verb::kLs, "ls", "List samples: key, label, size, pixels, source path", "DATASET|SHARD...", 1,
     kAny, "pack ls shards/ --label cat --limit 10",
     "Third-party shards need no index: they are scanned.", kReadCodes},
    {Verb::kCat, "cat", "Write the image of one sample to stdout", "DATASET|SHARD [KEY]", 1, 2,
     "pack cat shards/ cat/0001 > 0001.jpg",
     "The bytes are checked against their hash where there is an index.", kReadCodes},
    {Verb::kExtract, "extract", "Write samples back as files at their source paths",
     "DATASET|SHARD...", 1, kAny, "pack extract shards/ -o photos-again/",
     "Every field is written, byte for byte: the image at its source path, what lay beside it "
     "under the\n"
     "same name (a.txt, a.mask.png), and a field from a table or COCO json as a.json, a.txt. "
     "Labels come\n"
     "back as the folders of the source paths; where these do not tell them, or their numbers, "
     "--list\n"
     "writes them down, and the command that packs the files again with them is printed. Samples "
     "without\n"
     "a source path are named by their key. A json field that --with-json made is not a file of "
     "the "
     "source\n"
     "and stays out. OUT must be new or empty, or what an unfinished run has left: the same "
     "command goes\n"
     "on there, keeps the files that have the dataset's bytes and refuses others. Nothing is "
     "written\n"
     "outside of OUT but the list, and nothing through a link. A name that is too long or taken "
     "gets a\n"
     "hash at its end; such files, and those that are withheld because they are damaged, are "
     "listed.",
     kExtractCodes},
    {Verb::kStats, "stats",
     "Show what a dataset holds: classes, splits, sizes, formats; and what is suspicious",
     "DATASET|SHARD...", 1, kAny, "pack stats shards/",
     "Reads the manifest and the indexes alone; of third-party shards, the header of every image. "
     "Named at\n"
     "the end: classes without samples, copies, images in two splits or under two classes, samples "
     "in a\n"
     "folder of another class. With --check these make the exit code 8.",
     kLookCodes},
    {Verb::kDiff, "diff", "Show what differs between two datasets of any formats",
     "DATASET DATASET", 2, 2, "pack diff shards-v1/ shards-v2/",
     "Compares samples of the same key (or path, or bytes) by the indexes alone: added (+), "
     "removed "
     "(-),\n"
     "content (M), relabelled (L), moved to another split (S), renamed (R), fields (F); then "
     "classes and\n"
     "options. A dataset is a folder or a single shard. With --check a difference of samples or "
     "classes\n"
     "makes the exit code 8.",
     kLookCodes},
    {Verb::kDups, "dups", "Find images that are there more than once, within and across datasets",
     "DATASET|SHARD...", 1, kAny, "pack dups train/ val/ --near",
     "Copies byte for byte are found by the hashes in the indexes, and then compared. --near also "
     "decodes\n"
     "all images, at a reduced scale, and finds those that were scaled, re-encoded or brightened: "
     "their\n"
     "64-bit pHashes differ in few bits. Crops, rotations and mirrored images are not found.\n"
     "Images under several classes come first, then those in several splits or datasets.",
     kDupsCodes},
    {Verb::kReport, "report",
     "Write a page that shows what a dataset holds: charts, pictures, what is odd",
     "DATASET|SHARD...", 1, kAny, "pack report shards/ -o report.html",
     "One HTML file without scripts and links, which any browser shows, also offline: counts, "
     "classes by\n"
     "split, sizes, pictures of every class, copies side by side, skipped inputs, shards. The "
     "samples are\n"
     "chosen by the hashes of their keys: the same dataset gives the same page. Of a dataset that "
     "is\n"
     "damaged it shows what it can, says so, and the exit code is 4.",
     kReportCodes},
    {Verb::kBench, "bench",
     "Measure how fast a loader reads a dataset here, and what the bottleneck is",
     "DATASET|SHARD...", 1, kAny, "pack bench shards/ --batch 64 --decode 224",
     "Runs the C++ loader of //readers over the dataset and compares it with what the machine can "
     "do.\n"
     "The first epoch may read from the disk; later ones are served by the page cache where it is "
     "large\n"
     "enough.",
     kReadCodes},
    {Verb::kCompletions, "completions", "Print completions for a shell", "bash|zsh|fish", 1, 1,
     "source <(pack completions bash)", "", kPrintCodes},
    {Verb::kMan, "man", "Print the manual page", "", 0, 0, "pack man | man -l -", "", kPrintCodes},
}};

}  // namespace

std::span<const VerbSpec> AllVerbs() { return kVerbs; }

const VerbSpec& SpecOf(Verb verb) { return kVerbs[static_cast<size_t>(verb)]; }

const VerbSpec* FindVerb(std::string_view name) {
  for (const VerbSpec& verb : kVerbs) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

std::vector<std::string> VerbNames() {
  std::vector<std::string> names;
  for (const VerbSpec& verb : kVerbs) names.emplace_back(verb.name);
  return names;
}

}  // namespace shardpack::cli
