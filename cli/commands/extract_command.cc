#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/commands/extract_list.h"
#include "cli/commands/extract_path.h"
#include "cli/commands/folder_labels.h"
#include "cli/commands/out_folder.h"
#include "cli/commands/output_tree.h"
#include "cli/commands/selection.h"
#include "cli/flags/failure.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/stop_notice.h"
#include "cli/terminal/stop_signal.h"
#include "cli/terminal/units.h"
#include "converters/listing/sidecars.h"
#include "converters/sources/dataset_source.h"
#include "converters/sources/indexed_shards.h"
#include "converters/threads/io_pool.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/status_macros.h"
#include "formats/webdataset/tool_indexes/shard_members.h"
#include "jobs/open_input.h"

namespace shardpack::cli {
namespace {

using absl::StrAppend;
using absl::StrCat;

constexpr uint64_t kNamedLosses = 20;
constexpr std::string_view kLabelEnding = "cls";

class Extractor {
 public:
  // `list`: nullptr if not requested.
  Extractor(const Dataset& dataset, OutputTree& out, bool whole, ExtractList* list,
            Terminal& terminal)
      : labels(dataset.classes(), whole),
        dataset_(dataset),
        out_(out),
        list_(list),
        terminal_(terminal),
        suffixes_(SidecarSuffixes(dataset)),
        made_json_(HasMadeJson(dataset)) {}

  // Extracts one sample. An error ends the run; a withheld file does not.
  absl::Status Extract(const SampleRow& row) {
    const SampleLocation at = dataset_.Locate(row.id);
    bool any = false;
    for (size_t f = 0; f < row.index.fields(); ++f) {
      if (!row.index.has_field(row.record, f)) continue;
      any = true;
      const std::string field(row.index.field_name(f));
      // --with-json made it from facts about the image; the source had no such file.
      if (made_json_ && field == kMetadataField) continue;
      content_.resize(row.index.field(row.record, f).length);
      const absl::Status read =
          dataset_.ReadField(at, f, std::as_writable_bytes(std::span(content_)));
      if (absl::IsDataLoss(read)) {
        Withhold(row, StrCat(std::string(read.message()),
                             "; pack validate says what is wrong with the shard"));
        continue;
      }
      if (!read.ok()) return read;
      Add(field, NameOf(row, field));
    }
    if (!any) Withhold(row, "the sample has no field");
    bool label_file = false;
    // WebDataset shards store the label as a separate file, which is not a field.
    if (row.index.source_path(row.record).empty() && dataset_.format() == "webdataset") {
      ASSIGN_OR_RETURN(std::optional<std::string> label, LabelFile(row));
      if (label) {
        label_file = true;
        content_ = *std::move(label);
        Add(std::string(kLabelEnding), {KeyOf(row), StrCat(".", std::string(kLabelEnding))});
      }
    }
    labels.Add(PathOf(row), row.index.label(row.record), label_file);
    return WriteAll(row, label_file);
  }

  std::atomic<uint64_t> files = 0, bytes = 0;
  uint64_t withheld = 0, renamed = 0;
  FolderLabels labels;
  std::map<std::string, uint64_t> of_field;  // files

 private:
  struct FileName {
    std::string stem, ending;
  };

  // The label as written in the shard, such as "007" or "-1"; a number would not keep the spelling.
  absl::StatusOr<std::optional<std::string>> LabelFile(const SampleRow& row) {
    const std::optional<size_t> field = row.index.FindField(kLabelEnding);
    if (field && row.index.has_field(row.record, *field))
      return std::nullopt;  // a text field, which is written anyway
    if (row.shard.data_path != shard_.path()) {
      ASSIGN_OR_RETURN(File shard, File::OpenRead(row.shard.data_path));
      shard_ = std::move(shard);
    }
    const Extent record = row.index.record(row.record);
    return LabelText(shard_, record.offset, record.length);
  }

  static std::string KeyOf(const SampleRow& row) {
    const std::string_view key = row.index.key(row.record);
    return key.empty() ? StrCat(row.shard.name, "-", row.record) : std::string(key);
  }

  // If pixels were changed, the image may have another format than its source.
  std::string WithItsEnding(std::string_view path, ImageFormat format) const {
    if (dataset_.manifest() == nullptr || dataset_.manifest()->facts.pixels.count("format") == 0)
      return std::string(path);
    return NamedAs(std::string(path), format);
  }

  // The name of the field whose bytes are in content_.
  FileName NameOf(const SampleRow& row, const std::string& field) const {
    const std::string_view source = row.index.source_path(row.record);
    const std::string stem = source.empty() ? KeyOf(row) : std::string(PathStem(source));
    if (field != kImageField) {
      const auto suffix = suffixes_.find(field);
      return {stem, StrCat(".", suffix == suffixes_.end() ? field : suffix->second)};
    }
    const ImageFormat format = ImageOf(row, AsBytes(content_)).format;
    if (source.empty()) return {stem, StrCat(".", std::string(ImageExtension(format)))};
    const std::string path = WithItsEnding(source, format);
    return {std::string(PathStem(path)), path.substr(PathStem(path).size())};
  }

  static std::string PathOf(const SampleRow& row) {
    const std::string_view source = row.index.source_path(row.record);
    return source.empty() ? KeyOf(row) : std::string(source);
  }

  // Adds content_ as a file of the sample.
  void Add(std::string field, FileName name) {
    pending_.push_back({std::move(field), std::move(name), std::move(content_)});
    content_.clear();
  }

  // `label_file`: the last file is the label.
  absl::Status WriteAll(const SampleRow& row, bool label_file) {
    std::vector<OutputTree::NewFile> together;
    for (const Pending& file : pending_) {
      std::string path = HarmlessPath(file.name.stem + file.name.ending);
      const std::string ending = HarmlessPath(file.name.ending);
      const size_t kept = !file.name.ending.empty() && path.ends_with(ending) ? ending.size() : 0;
      together.push_back({std::move(path), kept, AsBytes(file.content)});
    }
    ASSIGN_OR_RETURN(const std::vector<OutputTree::Written> written, out_.WriteTogether(together));
    std::string image;
    std::vector<std::string> parts;
    for (size_t i = 0; i < written.size(); ++i) {
      const std::string& field = pending_[i].field;
      if (!written[i].path.ok()) {
        Withhold(row, std::string(written[i].path.status().message()));
        continue;
      }
      SayRenamed(pending_[i].name, together[i].path, *written[i].path);
      if (field == kImageField) {
        image = *written[i].path;
      } else if (!label_file || i + 1 < written.size()) {
        parts.push_back(PartOf(field));
      }
      if (!written[i].fresh) continue;  // another sample has the same file
      ++files;
      ++of_field[field];
      bytes += pending_[i].content.size();
    }
    pending_.clear();
    if (list_ != nullptr && !image.empty()) list_->Add(image, row.index.label(row.record), parts);
    return absl::OkStatus();
  }

  // The name that --fields uses for it.
  std::string PartOf(const std::string& field) const {
    const auto suffix = suffixes_.find(field);
    return suffix == suffixes_.end() ? field : StrCat(suffix->second, ":", field);
  }

  void SayRenamed(const FileName& name, const std::string& path, const std::string& written) {
    const std::string wanted = name.stem + name.ending;
    if (written == wanted || ++renamed > kNamedLosses) return;
    terminal_.Warn(
        StrCat(EscapeForTerminal(wanted), " is written as ", EscapeForTerminal(written), ": ",
               written == path ? "the name has characters that harm a terminal or a path"
                               : "the name is too long, or another sample's file has it"));
  }

  void Withhold(const SampleRow& row, const std::string& why) {
    if (++withheld <= kNamedLosses) {
      terminal_.Warn(StrCat("withheld ", EscapeForTerminal(row.index.key(row.record)), ": ", why));
    }
  }

  const Dataset& dataset_;
  OutputTree& out_;
  ExtractList* const list_;
  Terminal& terminal_;
  const std::map<std::string, std::string> suffixes_;
  const bool made_json_;
  struct Pending {
    std::string field;
    FileName name;
    std::string content;
  };
  std::vector<Pending> pending_;  // of the current sample
  std::string content_;           // of the current field
  File shard_;                    // the shard of the last label read
};

// "100 images, 98 txt, 100 mask".
std::string DescribeFields(const Extractor& extractor) {
  std::string text;
  const auto add = [&](const std::string& name, uint64_t count) {
    StrAppend(&text, text.empty() ? "" : ", ",
              name == kImageField ? Counted(count, "image", "images")
                                  : StrCat(FormatCount(count), " ", EscapeForTerminal(name)));
  };
  const auto image = extractor.of_field.find(std::string(kImageField));
  if (image != extractor.of_field.end()) add(image->first, image->second);
  for (const auto& [name, count] : extractor.of_field) {
    if (name != kImageField) add(name, count);
  }
  return text;
}

std::string Json(const Extractor& extractor, const std::string& out) {
  nlohmann::json fields = nlohmann::json::object();
  for (const auto& [name, count] : extractor.of_field) fields[PercentEscape(name)] = count;
  const nlohmann::json json = {{"schema", "shardpack.extract/1"}, {"out", PercentEscape(out)},
                               {"files", extractor.files.load()}, {"fields", std::move(fields)},
                               {"bytes", extractor.bytes.load()}, {"renamed", extractor.renamed},
                               {"withheld", extractor.withheld}};
  return json.dump() + "\n";
}

void SaySummary(const Extractor& extractor, const OutputTree& tree, const std::string& out,
                Terminal& terminal) {
  const std::string fields = DescribeFields(extractor);
  terminal.Say(StrCat("extracted ", Counted(extractor.files, "file", "files"), ", ",
                      FormatBytes(extractor.bytes), ", into ", EscapeForTerminal(out),
                      fields.empty() ? "" : ": ", fields));
  if (!tree.made_parent().empty()) {
    terminal.Say(StrCat("made      the folder ", EscapeForTerminal(tree.made_parent()),
                        ", which was not there"));
  }
  if (extractor.renamed > 0)
    terminal.Say(StrCat("renamed   ", Counted(extractor.renamed, "file", "files")));
  if (extractor.withheld > 0)
    terminal.Say(StrCat("withheld  ", FormatCount(extractor.withheld), " samples or fields"));
}

// Includes the commands that write the labels to a list.
void WarnOfLabels(const Extractor& extractor, const Dataset& dataset,
                  const std::vector<std::string>& inputs, const std::string& out,
                  const CommandLine& line, Terminal& terminal) {
  const std::string doubt = extractor.labels.Doubt();
  if (doubt.empty()) return;
  terminal.Warn(StrCat(doubt,
                       ". --list writes the labels down, and says what packs the files again with "
                       "them:",
                       CommandsWithList(dataset, inputs, out, line)));
}

void SayList(uint64_t images, const std::string& file, const absl::StatusOr<std::string>& command,
             Terminal& terminal) {
  if (!command.ok()) return terminal.Warn(std::string(command.status().message()));
  terminal.Say(StrCat("listed    ", Counted(images, "image", "images"), " in ",
                      EscapeForTerminal(file), ". To pack them again with their labels:\n  ",
                      *command));
}

// Identifies the extraction, so that another run can compare: a line of what was opened and
// selected, independent of paths, and a line for people.
std::string ExtractionOf(const Dataset& dataset, const std::vector<std::string>& inputs,
                         const CommandLine& line) {
  std::string chosen;
  if (!line.samples().split.empty())
    absl::StrAppend(&chosen, " --split ", ShellQuoted(line.samples().split));
  if (line.samples().label)
    absl::StrAppend(&chosen, " --label ", ShellQuoted(*line.samples().label));
  if (line.samples().limit != 0) absl::StrAppend(&chosen, " --limit ", line.samples().limit);
  const std::string key = StrCat(IdentityText(dataset.identity()), chosen);
  return StrCat(Xxh3_128(AsBytes(key)).ToHex(), "\n", inputs[0],
                inputs.size() > 1 ? StrCat(" and ", inputs.size() - 1, " more") : "", " (",
                IdentityText(dataset.identity()), ")", chosen);
}

absl::Status CheckOutside(const Dataset& dataset, const std::vector<std::string>& inputs,
                          const std::string& out) {
  for (const std::string& input : inputs) {
    if (dataset.manifest() == nullptr || !LiesIn(out, input)) continue;
    return absl::InvalidArgumentError(StrCat("the output ", EscapeForTerminal(out),
                                             " lies in the dataset ", EscapeForTerminal(input),
                                             "; extract into another folder"));
  }
  return absl::OkStatus();
}

// A list needs the labels as they are in the shards.
absl::StatusOr<ExtractList> NewList(const Dataset& dataset, const std::vector<std::string>& inputs,
                                    const std::string& out, const CommandLine& line) {
  IoPool pool(line.run.io_depth);
  RETURN_IF_ERROR(CheckIndexedShards(dataset, inputs[0], pool));
  return ExtractList::Create(dataset, inputs, out, line);
}

}  // namespace

ExitCode RunExtract(const CommandLine& line, Terminal& terminal) {
  std::vector<std::string> inputs = line.arguments;
  std::string out = line.samples().out;
  if (out.empty() && inputs.size() > 1) {
    out = inputs.back();
    inputs.pop_back();
  }
  if (out.empty()) {
    return Fail(
        absl::InvalidArgumentError(StrCat("no output folder. Type:\n  ", TypedProgram(),
                                          " extract ", ShellQuoted(inputs[0]), " -o again")),
        terminal);
  }
  const bool same_labels = line.samples().label.has_value() || !line.samples().list.empty();
  absl::StatusOr<Dataset> dataset = OpenShown(inputs, same_labels, terminal);
  if (!dataset.ok()) return Fail(dataset.status(), terminal);
  absl::StatusOr<Selection> selection = Selection::Make(*dataset, line);
  if (!selection.ok()) return Fail(selection.status(), terminal);
  const absl::Status outside = CheckOutside(*dataset, inputs, out);
  if (!outside.ok()) return Fail(outside, terminal);
  std::optional<ExtractList> list;
  if (!line.samples().list.empty()) {
    absl::StatusOr<ExtractList> made = NewList(*dataset, inputs, out, line);
    if (!made.ok()) return Fail(made.status(), terminal);
    list.emplace(*std::move(made));
  }
  absl::StatusOr<OutputTree> tree = OutputTree::Create(out, ExtractionOf(*dataset, inputs, line));
  if (!tree.ok()) return Fail(tree.status(), terminal);

  EndAtOnceOnSignal(false);
  const bool whole = !line.samples().label && line.samples().limit == 0;
  Extractor extractor(*dataset, *tree, whole, list ? &*list : nullptr, terminal);
  Progress progress(terminal);
  std::atomic<uint64_t> samples = 0;
  progress.Watch([&] {
    return ProgressView{.stage = "extracting",
                        .unit = "samples",
                        .done = samples,
                        .total = dataset->size(),
                        .bytes_out = extractor.bytes};
  });
  absl::Status failed;
  absl::Status status = [&] {
    const StopNotice notice(terminal);
    return ForEachSample(*dataset, *selection, [&](const SampleRow& row) {
      failed = StopSignal() == 0 ? extractor.Extract(row) : absl::CancelledError();
      ++samples;
      return failed.ok();
    });
  }();
  progress.End();
  if (status.ok()) status = failed;
  absl::StatusOr<std::string> command = std::string();
  if (status.ok() && list) command = list->Write();
  // Labels that a list cannot express are not a reason to start again.
  if (!absl::IsInvalidArgument(command.status())) status.Update(command.status());
  if (status.ok()) status = tree->Finish();
  if (!status.ok()) {
    const ExitCode code = Fail(status, terminal);
    SayHowToGoOn(code, "What is written is kept.", line, terminal);
    return code;
  }
  SaySummary(extractor, *tree, out, terminal);
  if (!list) {
    WarnOfLabels(extractor, *dataset, inputs, out, line, terminal);
  } else {
    SayList(list->images(), line.samples().list, command, terminal);
  }
  Results results;
  if (line.json) results.Write(Json(extractor, out));
  const bool all = extractor.withheld == 0 && extractor.renamed == 0 && command.ok();
  return FinishResults(results, all ? ExitCode::kDone : ExitCode::kSkipped, terminal);
}

}  // namespace shardpack::cli
