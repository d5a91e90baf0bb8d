#include "validators/looking/validation_facts.h"

#include <nlohmann/json.hpp>

#include "formats/io/escape.h"
#include "validators/report/validation_report.h"

namespace shardpack {
namespace {

using nlohmann::json;

// The bytes of a text.
std::string Text(const json& value) {
  const std::string& text = value.get_ref<const std::string&>();
  return PercentUnescape(text).value_or(text);
}

// Those of a member; empty if it is not there, or no text.
std::string Text(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_string() ? "" : Text(*found);
}

uint64_t Number(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

}  // namespace

absl::StatusOr<ValidationFacts> ParseValidation(std::string_view text) {
  const json report = json::parse(text, nullptr, false);
  if (!report.is_object() || Text(report, "schema") != kValidationSchema)
    return absl::InvalidArgumentError("not what pack validate --json prints");
  ValidationFacts facts;
  facts.level = Text(report, "level");
  facts.identity = Text(report, "identity");
  facts.errors = Number(report, "errors");
  facts.warnings = Number(report, "warnings");
  if (const auto records = report.find("records");
      records != report.end() && records->is_object()) {
    facts.records = Number(*records, "total");
    facts.records_checked = Number(*records, "checked");
  }
  const auto each = [&](const char* name, const auto& take) {
    const auto list = report.find(name);
    if (list == report.end() || !list->is_array()) return;
    for (const json& item : *list) take(item);
  };
  each("not_checked", [&](const json& item) {
    if (item.is_string() && facts.not_checked.size() < ValidationFacts::kMostFindings)
      facts.not_checked.push_back(Text(item));
  });
  each("findings", [&](const json& item) {
    if (!item.is_object() || facts.findings.size() == ValidationFacts::kMostFindings) return;
    facts.findings.push_back({Text(item, "severity"), Text(item, "id"), Text(item, "message"),
                              Text(item, "shard"), Text(item, "key")});
  });
  return facts;
}

}  // namespace shardpack
