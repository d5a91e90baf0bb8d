#include "validators/report/validation_report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "formats/core/manifest.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/shell_quoted.h"

namespace shardpack {
namespace {

// Members in the order that suits a reader.
using Json = nlohmann::ordered_json;

// There is no source to rebuild a shard from.
constexpr std::string_view kRepairIndexed =
    "run `pack repair OUT`, which rebuilds an index from its shard, and with --from COPY takes a "
    "shard from a good copy";

// The catalogue's hint adapted to this report: with the dataset's name, or for a shard that is
// alone or lies elsewhere.
std::string HintOf(const ValidationReport& report, const Finding& finding) {
  const FindingSpec& spec = SpecOf(finding.id);
  const auto beside = report.beside.find(finding.shard);
  const bool named = beside != report.beside.end();
  const bool of_dataset = named || (report.identity && !report.elsewhere.contains(finding.shard));
  const bool indexed = named ? beside->second.indexed_in_place : report.indexed_in_place;
  const bool repairable = !spec.lone_hint.empty();
  const std::string program = absl::StrCat("`", TypedProgram());
  const std::string out = ShellQuoted(named ? beside->second.folder : report.subject);
  return absl::StrReplaceAll(
      std::string(!repairable   ? spec.hint
                  : !of_dataset ? spec.lone_hint
                  : indexed     ? kRepairIndexed
                                : spec.hint),
      {{"`pack repair OUT", absl::StrCat(program, " repair ", out)},
       {"`pack commit OUT", absl::StrCat(program, " commit ", out)},
       {"`pack index SHARDS -o OUT", absl::StrCat(program, " index SHARDS -o ", out)}});
}

Json ToValue(const ValidationReport& report, const Finding& finding) {
  const FindingSpec& spec = SpecOf(finding.id);
  Json value;
  value["id"] = std::string(spec.name);
  value["severity"] = finding.severity == Severity::kError ? "error" : "warning";
  value["message"] = std::string(spec.message);
  value["shard"] = PercentEscape(finding.shard);
  if (finding.record) value["record"] = *finding.record;
  if (!finding.key.empty()) value["key"] = PercentEscape(finding.key);
  if (!finding.field.empty()) value["field"] = PercentEscape(finding.field);
  if (finding.offset) value["offset"] = *finding.offset;
  if (finding.length) value["length"] = *finding.length;
  if (!finding.expected.empty()) value["expected"] = PercentEscape(finding.expected);
  if (!finding.actual.empty()) value["actual"] = PercentEscape(finding.actual);
  if (!finding.detail.empty()) value["detail"] = PercentEscape(finding.detail);
  value["hint"] = PercentEscape(HintOf(report, finding));
  return value;
}

std::string Counted(uint64_t count, std::string_view noun) {
  return absl::StrCat(count, " ", std::string(noun), count == 1 ? "" : "s");
}

// "12 of 12 shards"
std::string PartOf(uint64_t done, uint64_t all, std::string_view noun) {
  return absl::StrCat(done, " of ", Counted(all, noun));
}

}  // namespace

std::string_view LevelName(ValidationLevel level) {
  switch (level) {
    case ValidationLevel::kQuick:
      return "quick";
    case ValidationLevel::kFull:
      return "full";
    case ValidationLevel::kDeep:
      break;
  }
  return "deep";
}

std::string FindingsText(const ValidationReport& report) {
  std::string text;
  std::array<bool, FindingTally::kIds> hinted{};
  for (const Finding& finding : report.findings.kept()) {
    absl::StrAppend(&text, ToText(finding), "\n");
    // Give the same advice only once.
    bool& told = hinted[static_cast<size_t>(finding.id)];
    if (!told) absl::StrAppend(&text, "  hint: ", HintOf(report, finding), "\n");
    told = true;
  }
  if (report.findings.omitted() > 0) {
    absl::StrAppend(&text, "and ", Counted(report.findings.omitted(), "more finding"),
                    " like these\n");
  }
  for (const FindingSpec& spec : AllFindings()) {
    const uint64_t count = report.findings.count(spec.id);
    if (count > 1) absl::StrAppend(&text, "  ", std::string(spec.name), ": ", count, "\n");
  }
  return text;
}

std::string ToText(const ValidationReport& report) {
  std::string text = FindingsText(report);
  if (!report.subject.empty()) absl::StrAppend(&text, EscapeForTerminal(report.subject), ": ");
  absl::StrAppend(&text, "level ", std::string(LevelName(report.level)), ", checked ",
                  PartOf(report.shards_checked, report.shards, "shard"), ", ",
                  PartOf(report.records_checked, report.records, "record"), ", ",
                  Counted(report.bytes_read, "byte"), " read");
  if (report.level == ValidationLevel::kDeep) {
    absl::StrAppend(&text, ", ", PartOf(report.images_decoded, report.images_checked, "image"),
                    " decoded");
  }
  if (report.sources_compared > 0) {
    absl::StrAppend(&text, ", ", Counted(report.sources_compared, "source file"), " compared");
  }
  if (report.seconds > 0) absl::StrAppend(&text, absl::StrFormat(", %.2f s", report.seconds));
  absl::StrAppend(&text, "\n");
  for (const std::string& gap : report.not_checked) {
    absl::StrAppend(&text, "not checked: ", EscapeForTerminal(gap), "\n");
  }
  if (report.identity) {
    absl::StrAppend(&text, "dataset ", IdentityText(*report.identity), "\n");
  }
  absl::StrAppend(&text, Counted(report.errors(), "error"), ", ",
                  Counted(report.warnings(), "warning"), " in what was checked\n");
  return text;
}

std::string ToJson(const ValidationReport& report) {
  Json json;
  json["schema"] = std::string(kValidationSchema);
  json["subject"] = PercentEscape(report.subject);
  json["level"] = std::string(LevelName(report.level));
  json["stopped"] = report.stopped;
  json["format"] = PercentEscape(report.format);
  if (report.identity) json["identity"] = IdentityText(*report.identity);
  json["errors"] = report.errors();
  json["warnings"] = report.warnings();
  json["shards"] = {{"total", report.shards}, {"checked", report.shards_checked}};
  json["records"] = {{"total", report.records}, {"checked", report.records_checked}};
  json["bytes"] = {{"total", report.bytes}, {"read", report.bytes_read}};
  json["sources_compared"] = report.sources_compared;
  json["images"] = {{"checked", report.images_checked}, {"decoded", report.images_decoded}};
  json["seconds"] = report.seconds;
  json["not_checked"] = PercentEscapeAll(report.not_checked);
  json["finding_counts"] = Json::object();
  for (const FindingSpec& spec : AllFindings()) {
    const uint64_t count = report.findings.count(spec.id);
    if (count > 0) json["finding_counts"][std::string(spec.name)] = count;
  }
  json["findings_omitted"] = report.findings.omitted();
  json["findings"] = Json::array();
  for (const Finding& finding : report.findings.kept())
    json["findings"].push_back(ToValue(report, finding));
  return json.dump(1) + "\n";
}

}  // namespace shardpack
