#include "converters/planning/record_order.h"

#include "absl/strings/str_cat.h"
#include "formats/io/bytes.h"

namespace shardpack {

std::string RecordOrderBytes(const Plan& plan, std::span<const Skip> skips) {
  std::vector<bool> skipped(plan.listing().rows(), false);
  for (const Skip& skip : skips) skipped[skip.row] = true;
  std::vector<uint32_t> place(plan.positions(),
                              0);  // by unsorted position; first used to mark what is present
  for (uint64_t i = 0; i < plan.positions(); ++i) {
    place[plan.unsorted_position(i)] = skipped[plan.row(i)] ? 0 : 1;
  }
  uint32_t packed = 0;
  for (uint32_t& each : place) each = each != 0 ? packed++ : 0;
  std::string bytes(size_t{4} * packed, '\0');
  char* at = bytes.data();
  for (uint64_t i = 0; i < plan.positions(); ++i) {
    if (skipped[plan.row(i)]) continue;
    StoreLittle(at, place[plan.unsorted_position(i)]);
    at += 4;
  }
  return bytes;
}

absl::StatusOr<std::vector<uint32_t>> ParseRecordOrder(std::string_view bytes, uint64_t records) {
  if (bytes.size() % 4 != 0 || bytes.size() / 4 != records) {
    return absl::DataLossError(absl::StrCat(std::string(kRecordOrderName), " has ", bytes.size(),
                                            " bytes for ", records, " records; expected 4 each"));
  }
  std::vector<uint32_t> places(records);
  std::vector<bool> taken(records, false);
  for (uint64_t i = 0; i < records; ++i) {
    places[i] = LoadLittle<uint32_t>(bytes.data() + i * 4);
    if (places[i] >= records || taken[places[i]]) {
      return absl::DataLossError(absl::StrCat(
          std::string(kRecordOrderName), " record ", i, " has place ", places[i],
          places[i] >= records ? ", which is beyond the end" : ", which another record has"));
    }
    taken[places[i]] = true;
  }
  return places;
}

}  // namespace shardpack
