// ValidationReport: what a validation checked, what it found, and what it did not check.
//
//   auto report = ValidateDataset("OUT", formats, options, progress, stop);
//   std::cout << ToText(*report);   // or ToJson(*report): schema "shardpack.validation/1"
//   bool damaged = report->errors() > 0;
//
// Neither output reports anything as valid unless it was read: both show level, counts and
// omissions.
//
// Errors: none; arbitrary bytes are escaped (ToText for terminals, ToJson as %XX).
// Units: bytes, seconds.
#ifndef SHARDPACK_VALIDATORS_REPORT_VALIDATION_REPORT_H_
#define SHARDPACK_VALIDATORS_REPORT_VALIDATION_REPORT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/io/hash.h"
#include "validators/report/finding_tally.h"

namespace shardpack {

inline constexpr std::string_view kValidationSchema = "shardpack.validation/1";

enum class ValidationLevel : uint8_t {
  kQuick,  // manifest, sizes, names, indexes; the start and the first and last record of each shard
  kFull,   // every byte
  kDeep,   // and every pixel
};
std::string_view LevelName(ValidationLevel level);  // "quick", "full", "deep"

struct ValidationReport {
  std::string subject;  // the dataset's folder, or the only shard; otherwise empty
  ValidationLevel level = ValidationLevel::kFull;
  std::string format;               // empty if unknown, or if shards differ
  std::optional<Digest> identity;   // of a dataset with a valid manifest
  std::set<std::string> elsewhere;  // shards outside the dataset, with their paths: never repaired
  bool indexed_in_place = false;    // a dataset that has no source
  // Of shards named by their paths: the datasets whose manifests lie beside them and list them.
  struct Beside {
    std::string folder;
    bool indexed_in_place = false;
  };
  std::map<std::string, Beside> beside;
  // The totals according to the manifest or the given files, and what was really read and compared.
  uint64_t shards = 0, shards_checked = 0;
  uint64_t records = 0, records_checked = 0;
  uint64_t bytes = 0, bytes_read = 0;
  uint64_t sources_compared = 0;
  // At level deep: images checked, and those of them decoded to the last pixel.
  uint64_t images_checked = 0, images_decoded = 0;
  double seconds = 0;
  bool stopped = false;                  // by a signal or by the time limit
  std::vector<std::string> not_checked;  // one sentence each
  FindingTally findings;

  uint64_t errors() const { return findings.errors(); }
  uint64_t warnings() const { return findings.warnings(); }
};

std::string ToText(const ValidationReport& report);
std::string FindingsText(
    const ValidationReport& report);                 // the part that names findings; may be empty
std::string ToJson(const ValidationReport& report);  // one object, one newline

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_REPORT_VALIDATION_REPORT_H_
