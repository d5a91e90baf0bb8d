// Checks that damage is detected.
#include <errno.h>

#include <algorithm>
#include <utility>

#include "formats/testing/contract_checks.h"
#include "formats/testing/corruptor.h"
#include "formats/testing/fault_injection.h"

namespace shardpack::testing {
namespace {

struct CleanShard {
  std::string bytes;
  ScanResult scan;
  std::string complaints;
};

absl::StatusOr<CleanShard> WriteClean(const FormatCase& c, const std::string& scratch,
                                      const GeneratorOptions& options) {
  const std::vector<OwnedSample> samples = SamplesFor(c, options);
  absl::StatusOr<std::string> bytes = WriteShard(*c.format, c.spec, samples, scratch + "/clean");
  if (!bytes.ok()) return Broken("writing: ", bytes.status().ToString());
  CleanShard clean{.bytes = *bytes, .scan = ScanCase(c, *bytes), .complaints = {}};
  clean.complaints = clean.scan.Complaints();
  if (clean.scan.records.size() != samples.size()) return Broken("records were lost");
  return clean;
}

// Requirements for damage that keeps the size. `by_digest` counts damage that only the file's
// digest reveals. It never affects a field's bytes: CheckScan verified that each hash is that of
// the bytes, so damage there changes the record.
absl::Status CheckDamage(const FormatCase& c, const CleanShard& clean, const Damage& damage,
                         uint64_t& by_digest) {
  const ScanResult scan = ScanCase(c, damage.bytes);
  absl::Status sound = CheckScan(scan, damage.bytes);
  if (!sound.ok()) return Broken(damage.what, ": ", std::string(sound.message()));
  if (scan.records != clean.scan.records || scan.Complaints() != clean.complaints)
    return absl::OkStatus();
  ++by_digest;
  if (scan.digest == clean.scan.digest)
    return Broken(damage.what, ": not even the digest shows it");
  return absl::OkStatus();
}

// A cut may go unnoticed if nothing is lost, or if the format has no end mark.
absl::Status CheckCut(const FormatCase& c, const CleanShard& clean, uint64_t size) {
  const Damage damage = Corruptor::TruncateTo(clean.bytes, size);
  const ScanResult scan = ScanCase(c, damage.bytes);
  absl::Status sound = CheckScan(scan, damage.bytes);
  if (!sound.ok()) return Broken(damage.what, ": ", std::string(sound.message()));
  if (scan.Complaints() != clean.complaints) return absl::OkStatus();
  if (scan.records == clean.scan.records) return absl::OkStatus();
  const size_t left = scan.records.size();
  if (c.silent_after_record && left < clean.scan.records.size() &&
      std::equal(scan.records.begin(), scan.records.end(), clean.scan.records.begin()) &&
      size <= clean.scan.records[left].offset) {
    return absl::OkStatus();
  }
  return Broken(damage.what, ": ", left, " of ", clean.scan.records.size(),
                " records and no finding");
}

}  // namespace

absl::Status CheckTruncation(const FormatCase& c, const std::string& scratch) {
  absl::StatusOr<CleanShard> clean = WriteClean(
      c, scratch, {.count = 3, .payloads = Payloads::kRandom, .min_bytes = 30, .max_bytes = 200});
  if (!clean.ok()) return clean.status();
  const uint64_t size = clean->bytes.size();
  // Tries every length of a small shard; for a larger one (an LMDB page is 4 KiB), the edges and a
  // prime step in between.
  constexpr uint64_t kEveryByte = 32 << 10, kStep = 13;
  for (uint64_t cut = 0; cut < size;) {
    absl::Status noticed = CheckCut(c, *clean, cut);
    if (!noticed.ok()) return noticed;
    const bool near_an_edge = size <= kEveryByte || cut < 4096 || size - cut < 4096;
    cut += near_an_edge ? 1 : kStep;
  }
  return absl::OkStatus();
}

absl::Status CheckBitFlips(const FormatCase& c, const std::string& scratch) {
  constexpr int kFlips = 2000;
  absl::StatusOr<CleanShard> clean = WriteClean(c, scratch, {.count = 8, .max_bytes = 1500});
  if (!clean.ok()) return clean.status();
  Corruptor corruptor(70);
  uint64_t by_digest = 0;
  for (int i = 0; i < kFlips; ++i) {
    absl::Status noticed = CheckDamage(c, *clean, corruptor.FlipBit(clean->bytes), by_digest);
    if (!noticed.ok()) return noticed;
  }
  ::testing::Test::RecordProperty("flips_only_the_digest_shows",
                                  absl::StrCat(by_digest, "/", kFlips));
  return absl::OkStatus();
}

absl::Status CheckZeroedPages(const FormatCase& c, const std::string& scratch) {
  absl::StatusOr<CleanShard> clean = WriteClean(
      c, scratch,
      {.count = 12, .payloads = Payloads::kRandom, .min_bytes = 3000, .max_bytes = 40000});
  if (!clean.ok()) return clean.status();
  uint64_t by_digest = 0;
  for (uint64_t page = 0; page * Corruptor::kPageBytes < clean->bytes.size(); ++page) {
    const Damage damage = Corruptor::ZeroPageAt(clean->bytes, page);
    if (!damage.changed) continue;
    absl::Status noticed = CheckDamage(c, *clean, damage, by_digest);
    if (!noticed.ok()) return noticed;
  }
  return absl::OkStatus();
}

absl::Status CheckGarbage(const FormatCase& c, const std::string& scratch) {
  absl::StatusOr<CleanShard> clean = WriteClean(c, scratch, {.count = 4, .max_bytes = 500});
  if (!clean.ok()) return clean.status();
  Random random(80);
  for (const size_t bytes : {1, 2, 3, 7, 8, 12, 100, 512, 513, 1024, 4096, 70000}) {
    const std::string garbage = random.Bytes(bytes);
    const ScanResult alone = ScanCase(c, garbage);
    absl::Status sound = CheckScan(alone, garbage);
    if (!sound.ok()) return Broken(bytes, " random bytes: ", std::string(sound.message()));
    if (alone.findings.findings().empty())
      return Broken(bytes, " random bytes are taken for a shard");
    const std::string longer = clean->bytes + garbage;
    const ScanResult after = ScanCase(c, longer);
    sound = CheckScan(after, longer);
    if (!sound.ok())
      return Broken(bytes, " random bytes at the end: ", std::string(sound.message()));
    if (after.Complaints() == clean->complaints)
      return Broken(bytes, " random bytes at the end go unnoticed");
  }
  return absl::OkStatus();
}

// Lets each read fail once: that must never look like damage or like a shard with less in it.
absl::Status CheckReadErrors(const FormatCase& c, const std::string& scratch) {
  absl::StatusOr<CleanShard> clean = WriteClean(
      c, scratch,
      {.count = 12, .payloads = Payloads::kRandom, .min_bytes = 3000, .max_bytes = 90000});
  if (!clean.ok()) return clean.status();
  FaultInjection faults;
  (void)ScanCase(c, clean->bytes);
  const uint64_t reads = faults.reads();
  if (reads < 2) return Broken(reads, " reads: the shard is too small for this check");
  for (uint64_t number = 0; number < reads; ++number) {
    faults.FailOneRead(faults.reads() + number, EIO);
    const ScanResult scan = ScanCase(c, clean->bytes);
    if (!absl::IsUnavailable(scan.status)) {
      return Broken("read ", number, " of ", reads, " failed: ", scan.status.ToString());
    }
    if (scan.findings.findings().size() > clean->scan.findings.findings().size()) {
      return Broken("read ", number, " of ", reads, " failed: ", scan.Complaints());
    }
  }
  return absl::OkStatus();
}

}  // namespace shardpack::testing
