#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/commands/selection.h"
#include "cli/flags/failure.h"
#include "cli/flags/suggest.h"
#include "cli/terminal/units.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;

absl::StatusOr<uint64_t> Find(const Dataset& dataset, const CommandLine& line) {
  const bool has_key = line.arguments.size() > 1;
  if (has_key == line.samples().record.has_value()) {
    return InvalidArgumentError(
        "which sample? Give its key or --record N, as in: pack cat shards/ cat/0001 > 0001.jpg");
  }
  if (line.samples().record.has_value()) {
    if (*line.samples().record < dataset.size()) return *line.samples().record;
    return InvalidArgumentError(StrCat("--record ", *line.samples().record, ": there are ",
                                       dataset.size(), " samples, numbered from 0"));
  }
  absl::StatusOr<uint64_t> id = dataset.FindKey(line.arguments[1]);
  if (!absl::IsNotFound(id.status())) return id;
  return InvalidArgumentError(StrCat("no sample has the key ", EscapeForTerminal(line.arguments[1]),
                                     "; ", TypedProgram(), " ls ", ShellQuoted(line.arguments[0]),
                                     " lists them"));
}

bool IsText(const std::string& bytes) { return EscapeForTerminal(bytes) == bytes; }

absl::StatusOr<std::string> Read(const CommandLine& line, Terminal& terminal) {
  ASSIGN_OR_RETURN(Dataset dataset,
                   OpenShown({&line.arguments[0], 1}, /*same_labels=*/false, terminal));
  ASSIGN_OR_RETURN(const uint64_t id, Find(dataset, line));
  ASSIGN_OR_RETURN(OwnedSample sample, dataset.Read(id));
  const std::string wanted =
      line.samples().field.empty() ? std::string(kImageField) : line.samples().field;
  std::vector<std::string> names;
  for (OwnedSample::Field& field : sample.fields) {
    if (field.name == wanted) return std::move(field.bytes);
    names.push_back(field.name);
  }
  std::string known;
  for (const std::string& name : names)
    absl::StrAppend(&known, known.empty() ? "" : ", ", EscapeForTerminal(name));
  return InvalidArgumentError(StrCat("--field ", EscapeForTerminal(wanted), ": the sample has ",
                                     known, DidYouMean(wanted, names)));
}

}  // namespace

ExitCode RunCat(const CommandLine& line, Terminal& terminal) {
  const absl::StatusOr<std::string> bytes = Read(line, terminal);
  if (!bytes.ok()) return Fail(bytes.status(), terminal);
  if (!line.samples().force && ::isatty(STDOUT_FILENO) == 1 && !IsText(*bytes)) {
    return Fail(InvalidArgumentError(
                    StrCat("refusing to write ", FormatCount(bytes->size()),
                           " bytes of binary data to the terminal; use > FILE, or --force")),
                terminal);
  }
  Results results;
  results.WriteBytes(*bytes);
  return FinishResults(results, ExitCode::kDone, terminal);
}

}  // namespace shardpack::cli
