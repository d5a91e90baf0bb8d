#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/commands/extract_list.h"
#include "cli/commands/folder_labels.h"
#include "cli/commands/out_folder.h"
#include "cli/commands/selection.h"
#include "cli/flags/failure.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/stop_notice.h"
#include "cli/terminal/stop_signal.h"
#include "cli/terminal/units.h"
#include "converters/extracting/extractor.h"
#include "converters/extracting/output_tree.h"
#include "converters/sources/indexed_shards.h"
#include "converters/threads/io_pool.h"
#include "formats/io/escape.h"
#include "formats/io/hash.h"
#include "formats/io/status_macros.h"
#include "formats/webdataset/label_text.h"
#include "jobs/open_input.h"

namespace shardpack::cli {
namespace {

using absl::StrAppend;
using absl::StrCat;

constexpr uint64_t kNamedLosses = 20;
// Says what is renamed and withheld, and collects the labels.
class Observer : public ExtractObserver {
 public:
  // `list`: nullptr if not requested.
  Observer(const Dataset& dataset, bool whole, ExtractList* list, Terminal& terminal)
      : labels(dataset.classes(), whole), list_(list), terminal_(terminal) {}

  void OnSample(const std::string& path, int64_t label, bool label_file) override {
    labels.Add(path, label, label_file);
  }

  void OnImage(const std::string& path, int64_t label,
               std::span<const std::string> parts) override {
    if (list_ != nullptr) list_->Add(path, label, parts);
  }

  void OnRenamed(const std::string& wanted, const std::string& harmless,
                 const std::string& written) override {
    if (++renamed > kNamedLosses) return;
    terminal_.Warn(
        StrCat(EscapeForTerminal(wanted), " is written as ", EscapeForTerminal(written), ": ",
               written == harmless ? "the name has characters that harm a terminal or a path"
                                   : "the name is too long, or another sample's file has it"));
  }

  void OnWithheld(std::string_view key, const std::string& why) override {
    if (++withheld <= kNamedLosses)
      terminal_.Warn(StrCat("withheld ", EscapeForTerminal(key), ": ", why));
  }

  uint64_t withheld = 0, renamed = 0;
  FolderLabels labels;

 private:
  ExtractList* const list_;
  Terminal& terminal_;
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

std::string Json(const Extractor& extractor, const Observer& observer, const std::string& out) {
  nlohmann::json fields = nlohmann::json::object();
  for (const auto& [name, count] : extractor.of_field) fields[PercentEscape(name)] = count;
  const nlohmann::json json = {{"schema", "shardpack.extract/1"}, {"out", PercentEscape(out)},
                               {"files", extractor.files.load()}, {"fields", std::move(fields)},
                               {"bytes", extractor.bytes.load()}, {"renamed", observer.renamed},
                               {"withheld", observer.withheld}};
  return json.dump() + "\n";
}

void SaySummary(const Extractor& extractor, const Observer& observer, const OutputTree& tree,
                const std::string& out, Terminal& terminal) {
  const std::string fields = DescribeFields(extractor);
  terminal.Say(StrCat("extracted ", Counted(extractor.files, "file", "files"), ", ",
                      FormatBytes(extractor.bytes), ", into ", EscapeForTerminal(out),
                      fields.empty() ? "" : ": ", fields));
  if (!tree.made_parent().empty()) {
    terminal.Say(StrCat("made      the folder ", EscapeForTerminal(tree.made_parent()),
                        ", which was not there"));
  }
  if (observer.renamed > 0)
    terminal.Say(StrCat("renamed   ", Counted(observer.renamed, "file", "files")));
  if (observer.withheld > 0)
    terminal.Say(StrCat("withheld  ", FormatCount(observer.withheld), " samples or fields"));
}

// Includes the commands that write the labels to a list.
void WarnOfLabels(const FolderLabels& labels, const Dataset& dataset,
                  const std::vector<std::string>& inputs, const std::string& out,
                  const CommandLine& line, Terminal& terminal) {
  const std::string doubt = labels.Doubt();
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
  Observer observer(*dataset, whole, list ? &*list : nullptr, terminal);
  Extractor extractor(*dataset, *tree, LabelText, observer);
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
  SaySummary(extractor, observer, *tree, out, terminal);
  if (!list) {
    WarnOfLabels(observer.labels, *dataset, inputs, out, line, terminal);
  } else {
    SayList(list->images(), line.samples().list, command, terminal);
  }
  Results results;
  if (line.json) results.Write(Json(extractor, observer, out));
  const bool all = observer.withheld == 0 && observer.renamed == 0 && command.ok();
  return FinishResults(results, all ? ExitCode::kDone : ExitCode::kSkipped, terminal);
}

}  // namespace shardpack::cli
