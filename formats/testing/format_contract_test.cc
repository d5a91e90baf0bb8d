// The contract suite on a toy format that keeps the contract, and on toys that each violate it in
// one way, which the responsible check must detect.
//
// A toy record is {magic, header bytes} {key, label, names and sizes of the fields} CRC-32C
// {payloads}; the shard ends with {end magic, records, CRC-32C}.
#include "formats/testing/format_contract.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/hash.h"
#include "formats/testing/contract_checks.h"
#include "formats/testing/scratch_folder.h"
#include "gtest/gtest.h"

namespace shardpack::testing {
namespace {

constexpr uint32_t kRecordMagic = 0x52594F54, kEndMagic = 0x45594F54;
constexpr size_t kPrefixBytes = 8, kCrcBytes = 4, kEndBytes = 16;
constexpr size_t kMaxKeyBytes = 300;

enum class Defect {
  kNone,
  // of the writer
  kLosesLabel,
  kLosesRecord,
  kSwapsRecords,
  kCutsKey,
  kCutsHugeRecord,
  kLosesEmptyField,
  kLooksLate,
  kWritesClock,
  kWritesThread,
  kSharesState,
  kTakesLongKey,
  kRefusalLeavesBytes,
  kRefusalWithoutKey,
  kLeavesFile,
  kRenamesErrors,
  // of the scanner
  kWrongHash,
  kHashOfFirstBytes,
  kWrongExtent,
  kSharedExtent,
  kSilentCut,
  kStatusForDamage,
  kExtentOutside,
  kNoTrailingData,
  kWarnsAboutGood,
  kTakesGarbage,
  kReadErrorIsTheEnd,
  // of the row
  kSmallBound,
  kSmallOverhead,
  kBadShardName,
  kNoSniff,
  kAnyLayout,
  kRandomSidecar,
};

std::atomic<uint64_t> shared_state{0};

void Append(std::string& out, auto number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}
void AppendText(std::string& out, std::string_view text) {
  Append(out, static_cast<uint32_t>(text.size()));
  out.append(text);
}

class ToyWriter : public ShardWriter {
 public:
  ToyWriter(StagedFile& file, Defect defect) : file_(file), defect_(defect) {
    if (defect == Defect::kLeavesFile) std::ofstream(file.path() + ".lock") << "x";
  }

  absl::Status Append(const SampleView& sample) override {
    if (sample.key.size() > kMaxKeyBytes && defect_ != Defect::kTakesLongKey) {
      if (defect_ == Defect::kRefusalLeavesBytes)
        (void)file_.Append(AsBytes(sample.key.substr(0, 3)));
      if (defect_ == Defect::kRefusalWithoutKey)
        return absl::InvalidArgumentError("a key is too long");
      return absl::InvalidArgumentError(
          absl::StrCat("the key is too long: ", std::string(sample.key)));
    }
    const uint64_t number = count_++;
    if (defect_ == Defect::kLosesRecord && number % 10 == 9) return absl::OkStatus();
    if (defect_ == Defect::kLooksLate || (defect_ == Defect::kSwapsRecords && number == 0)) {
      return std::exchange(late_, sample) ? Write(sample) : absl::OkStatus();
    }
    absl::Status written = Write(sample);
    if (defect_ == Defect::kSwapsRecords && late_) written.Update(Write(*std::exchange(late_, {})));
    return written;
  }

  absl::Status Finish() override {
    if (late_) {
      absl::Status written = Write(*late_);
      if (!written.ok()) return written;
    }
    std::string end;
    shardpack::testing::Append(end, kEndMagic);
    shardpack::testing::Append(end, written_);
    shardpack::testing::Append(end, Crc32c(AsBytes(end)));
    const absl::Status status = file_.Append(AsBytes(end));
    return Rename(status);
  }

 private:
  absl::Status Rename(const absl::Status& status) const {
    if (status.ok() || defect_ != Defect::kRenamesErrors) return status;
    return absl::InternalError("the toy could not be written");
  }

  static void AppendHeader(std::string& header, const SampleView& sample, Defect defect) {
    AppendText(header, defect == Defect::kCutsKey ? sample.key.substr(0, 100) : sample.key);
    int64_t label = defect == Defect::kLosesLabel ? kNoLabel : sample.label;
    if (defect == Defect::kWritesClock) label += ::time(nullptr) << 32;
    if (defect == Defect::kWritesThread) label = ::gettid();
    if (defect == Defect::kSharesState) label += static_cast<int64_t>(shared_state++ << 32);
    shardpack::testing::Append(header, label);
  }

  absl::Status Write(const SampleView& sample) {
    std::string header, fields;
    AppendHeader(header, sample, defect_);
    uint32_t count = 0;
    std::vector<Bytes> parts(1);
    for (const FieldView& field : sample.fields) {
      Bytes bytes = field.bytes;
      if (bytes.empty() && defect_ == Defect::kLosesEmptyField) continue;
      if (defect_ == Defect::kCutsHugeRecord)
        bytes = bytes.first(std::min<size_t>(bytes.size(), 16 << 20));
      ++count;
      AppendText(fields, field.name);
      shardpack::testing::Append(fields, uint64_t{bytes.size()});
      parts.push_back(bytes);
    }
    shardpack::testing::Append(header, count);
    header += fields;
    std::string framed;
    shardpack::testing::Append(framed, kRecordMagic);
    AppendText(framed, header);
    shardpack::testing::Append(framed, Crc32c(AsBytes(framed)));
    parts[0] = AsBytes(framed);
    ++written_;
    const absl::Status status = file_.Append(parts);
    return Rename(status);
  }

  StagedFile& file_;
  const Defect defect_;
  uint64_t count_ = 0, written_ = 0;
  std::optional<SampleView> late_;
};

// Reads what AppendHeader and Write produce; checks every length against the remaining bytes.
class HeaderCursor {
 public:
  explicit HeaderCursor(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  T Number() {
    if (rest_.size() < sizeof(T)) ok_ = false;
    if (!ok_) return T{};
    const T value = LoadLittle<T>(rest_.data());
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  std::string_view Text() {
    const auto bytes = Number<uint32_t>();
    if (bytes > rest_.size()) ok_ = false;
    if (!ok_) return {};
    const std::string_view text = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return text;
  }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

class ToyWalk {
 public:
  ToyWalk(Defect defect, SequentialReader& in, const ScanOptions& options, RecordSink& records,
          FindingSink& findings)
      : defect_(defect), in_(in), options_(options), records_(records), findings_(findings) {}

  absl::Status Run() {
    if (defect_ == Defect::kWarnsAboutGood) (void)Report(FindingId::kWdsEmptyMember);
    while (true) {
      if (defect_ == Defect::kTakesGarbage && records_seen_ == 0 && !StartsLikeARecord())
        return absl::OkStatus();
      absl::StatusOr<Bytes> prefix = in_.Peek(kPrefixBytes);
      if (!prefix.ok() && defect_ == Defect::kReadErrorIsTheEnd) return Cut();
      if (!prefix.ok()) return prefix.status();
      if (prefix->size() < kPrefixBytes) return Cut();
      const auto magic = LoadLittle<uint32_t>(prefix->data());
      if (magic == kEndMagic) return End();
      if (magic != kRecordMagic) return Report(FindingId::kTfrecordExample);
      absl::StatusOr<bool> more = Record(LoadLittle<uint32_t>(prefix->data() + 4));
      if (!more.ok() || !*more) return more.status();
    }
  }

 private:
  bool StartsLikeARecord() {
    absl::StatusOr<Bytes> magic = in_.Peek(4);
    return magic.ok() && magic->size() == 4 &&
           (LoadLittle<uint32_t>(magic->data()) & 0xFFFFFF) == 0x594F54;
  }
  absl::Status Report(FindingId id) {
    if (defect_ == Defect::kStatusForDamage) return absl::DataLossError("damaged");
    Finding finding = MakeFinding(id, options_.shard_name);
    finding.offset = in_.position();
    findings_.Report(std::move(finding));
    return absl::OkStatus();
  }
  absl::Status Cut() {
    return defect_ == Defect::kSilentCut ? absl::OkStatus()
                                         : Report(FindingId::kContainerTruncated);
  }

  absl::Status End() {
    absl::StatusOr<Bytes> end = in_.Peek(kEndBytes);
    if (!end.ok()) return end.status();
    if (end->size() < kEndBytes) return Cut();
    if (LoadLittle<uint32_t>(end->data() + 12) != Crc32c(end->first(12)) ||
        LoadLittle<uint64_t>(end->data() + 4) != records_seen_) {
      return Report(FindingId::kCountMismatch);
    }
    absl::Status skipped = in_.Skip(kEndBytes);
    if (!skipped.ok() || in_.remaining() == 0 || defect_ == Defect::kNoTrailingData) return skipped;
    return Report(FindingId::kTrailingData);
  }

  // False if the scan cannot continue.
  absl::StatusOr<bool> Record(uint32_t header_bytes) {
    const uint64_t begin = in_.position(),
                   framed_bytes = kPrefixBytes + uint64_t{header_bytes} + kCrcBytes;
    if (framed_bytes > in_.remaining()) return Stop(Cut());
    absl::StatusOr<Bytes> framed = in_.Peek(framed_bytes);
    if (!framed.ok()) return framed.status();
    if (LoadLittle<uint32_t>(framed->data() + framed_bytes - kCrcBytes) !=
        Crc32c(framed->first(framed_bytes - kCrcBytes))) {
      return Stop(Report(FindingId::kTfrecordLengthCrc));
    }
    const std::string header(AsText(framed->subspan(kPrefixBytes, header_bytes)));
    absl::Status skipped = in_.Skip(framed_bytes);
    if (!skipped.ok()) return skipped;
    HeaderCursor cursor(header);
    ScannedRecord record{.key = cursor.Text()};
    record.label = cursor.Number<int64_t>();
    std::vector<ScannedField> fields;
    for (auto left = cursor.Number<uint32_t>(); left > 0 && cursor.ok(); --left) {
      fields.push_back({.name = cursor.Text()});
      fields.back().length = cursor.Number<uint64_t>();
    }
    if (!cursor.done()) return Stop(Report(FindingId::kTfrecordExample));
    absl::StatusOr<bool> whole = Payloads(fields);
    if (!whole.ok() || !*whole) return whole;
    record.offset = begin;
    record.length = in_.position() - begin;
    if (defect_ == Defect::kSharedExtent) record.length += in_.remaining() > 0 ? 1 : 0;
    record.fields = fields;
    records_.OnRecord(record);
    ++records_seen_;
    return true;
  }

  absl::StatusOr<bool> Payloads(std::vector<ScannedField>& fields) {
    for (ScannedField& field : fields) {
      field.offset = in_.position();
      if (field.length > in_.remaining()) {
        if (defect_ != Defect::kExtentOutside) return Stop(Cut());
        (void)Report(FindingId::kContainerTruncated);
        continue;
      }
      absl::StatusOr<uint64_t> hash = 0;
      if (defect_ == Defect::kHashOfFirstBytes) {
        absl::StatusOr<Bytes> bytes = in_.Peek(std::min<uint64_t>(field.length, 64));
        hash = Xxh3_64(*bytes);
        (void)in_.Skip(field.length);
      } else {
        hash = in_.HashNext(field.length);
      }
      if (!hash.ok()) return hash.status();
      field.hash = *hash + (defect_ == Defect::kWrongHash ? 1 : 0);
      if (defect_ == Defect::kWrongExtent) ++field.offset;
    }
    return true;
  }

  static absl::StatusOr<bool> Stop(absl::Status status) {
    if (!status.ok()) return status;
    return false;
  }

  const Defect defect_;
  SequentialReader& in_;
  const ScanOptions& options_;
  RecordSink& records_;
  FindingSink& findings_;
  uint64_t records_seen_ = 0;
};

template <Defect kDefect>
struct Toy {
  class Scanner : public ShardScanner {
    absl::Status Scan(SequentialReader& in, const ScanOptions& options, RecordSink& records,
                      FindingSink& findings) const override {
      return ToyWalk(kDefect, in, options, records, findings).Run();
    }
  };

  static std::string ShardName(std::string_view split, uint32_t number, uint32_t) {
    char name[16];
    snprintf(name, sizeof(name), "-%06u.toy", number);
    return kDefect == Defect::kBadShardName ? absl::StrCat("../", std::string(split), name)
                                            : absl::StrCat(std::string(split), name);
  }
  static uint64_t Bound(const ShardSpec&, const RecordShape& shape) {
    if (kDefect == Defect::kSmallBound) return shape.field_bytes[0];
    uint64_t bytes = kPrefixBytes + kCrcBytes + 4 + shape.key_bytes + 8 + 4;
    for (const uint64_t field : shape.field_bytes)
      bytes += 12 + 8 + field;  // names of up to 8 bytes
    return bytes;
  }
  static bool Sniff(Bytes head, std::string_view) {
    return kDefect != Defect::kNoSniff && head.size() >= 4 &&
           LoadLittle<uint32_t>(head.data()) == kRecordMagic;
  }
  static absl::StatusOr<std::unique_ptr<ShardWriter>> Create(StagedFile& file,
                                                             const ShardSpec& spec) {
    if (kDefect != Defect::kAnyLayout && !spec.layout.empty() && spec.layout != "plain") {
      return absl::InvalidArgumentError("no such layout");
    }
    return std::make_unique<ToyWriter>(file, kDefect);
  }
  static absl::StatusOr<std::vector<NamedBytes>> Sidecar(const SidecarInput& input) {
    std::vector<NamedBytes> files;
    for (const ManifestShard& shard : input.manifest.shards) {
      const uint64_t noise = kDefect == Defect::kRandomSidecar ? shared_state++ : 0;
      files.push_back({shard.name + ".idx", absl::StrCat(shard.records, " ", noise)});
    }
    return files;
  }

  static constexpr LayoutSpec kLayouts[] = {
      {.name = "plain", .doc = "the only one", .max_key_bytes = kMaxKeyBytes}};
  static constexpr SidecarSpec kSidecars[] = {{"toy", "a line a shard", Sidecar}};
  static inline const Scanner kScanner;
  static inline const Format kFormat = {
      .name = "toy",
      .doc = "records of a test",
      .layouts = kLayouts,
      .traits = {.max_record_bytes = uint64_t{1} << 40,
                 .shard_overhead_bytes = kDefect == Defect::kSmallOverhead ? 3 : kEndBytes},
      .shard_name = ShardName,
      .record_bound = Bound,
      .sniff = Sniff,
      .create = Create,
      .scanner = &kScanner,
      .sidecars = kSidecars,
  };
};

FormatCase CaseOf(const Format& format) {
  return {.format = &format, .spec = {.split = "train"}, .extra_fields = {"json", "txt"}};
}

INSTANTIATE_TEST_SUITE_P(Toy, FormatContract,
                         ::testing::ValuesIn(ContractOf(CaseOf(Toy<Defect::kNone>::kFormat))),
                         ContractTestName);

struct BrokenToy {
  Defect defect;
  const Format* format;
  std::string_view seen_by;
};
template <Defect kDefect>
BrokenToy Broke(std::string_view seen_by) {
  return {kDefect, &Toy<kDefect>::kFormat, seen_by};
}

std::ostream& operator<<(std::ostream& out, const BrokenToy& toy) {
  return out << "defect " << static_cast<int>(toy.defect) << ", seen by "
             << std::string(toy.seen_by);
}

class BrokenFormat : public ::testing::TestWithParam<BrokenToy> {};

TEST_P(BrokenFormat, IsSeen) {
  for (const ContractCheck& check : ContractChecks()) {
    if (check.name != GetParam().seen_by) continue;
    const ScratchFolder scratch;
    const absl::Status held = check.run(CaseOf(*GetParam().format), scratch.path());
    EXPECT_TRUE(absl::IsFailedPrecondition(held)) << held;
    return;
  }
  FAIL() << "no such check: " << GetParam().seen_by;
}

INSTANTIATE_TEST_SUITE_P(
    Toy, BrokenFormat,
    ::testing::Values(
        Broke<Defect::kLosesLabel>("RoundTrip"), Broke<Defect::kLosesRecord>("RoundTrip"),
        Broke<Defect::kSwapsRecords>("RoundTrip"), Broke<Defect::kCutsKey>("OddKeys"),
        Broke<Defect::kCutsHugeRecord>("HugeRecord"), Broke<Defect::kLosesEmptyField>("EmptyField"),
        Broke<Defect::kLooksLate>("ViewsDieAfterAppend"),
        Broke<Defect::kWritesClock>("SameBytesAgain"),
        Broke<Defect::kWritesThread>("AppendsFromManyThreads"),
        Broke<Defect::kSharesState>("WritersAtOnce"), Broke<Defect::kTakesLongKey>("RefusedSample"),
        Broke<Defect::kRefusalLeavesBytes>("RefusedSample"),
        Broke<Defect::kRefusalWithoutKey>("RefusedSample"),
        Broke<Defect::kLeavesFile>("AbandonedWriter"), Broke<Defect::kRenamesErrors>("FullDisk"),
        Broke<Defect::kWrongHash>("RoundTrip"), Broke<Defect::kHashOfFirstBytes>("BitFlips"),
        Broke<Defect::kHashOfFirstBytes>("ZeroedPages"), Broke<Defect::kWrongExtent>("RoundTrip"),
        Broke<Defect::kSharedExtent>("RoundTrip"), Broke<Defect::kSilentCut>("Truncation"),
        Broke<Defect::kStatusForDamage>("Truncation"), Broke<Defect::kStatusForDamage>("BitFlips"),
        Broke<Defect::kExtentOutside>("Truncation"), Broke<Defect::kNoTrailingData>("Garbage"),
        Broke<Defect::kTakesGarbage>("Garbage"), Broke<Defect::kReadErrorIsTheEnd>("ReadErrors"),
        Broke<Defect::kWarnsAboutGood>("RoundTrip"), Broke<Defect::kSmallBound>("RecordBound"),
        Broke<Defect::kSmallOverhead>("NoSamples"), Broke<Defect::kBadShardName>("Description"),
        Broke<Defect::kNoSniff>("Description"), Broke<Defect::kAnyLayout>("Description"),
        Broke<Defect::kRandomSidecar>("Sidecars")));

// A format without an end mark may silently lose whole records, but nothing else.
TEST(FormatContract, SilentCutsOnlyBetweenRecords) {
  FormatCase c = CaseOf(Toy<Defect::kSilentCut>::kFormat);
  c.silent_after_record = true;
  const ScratchFolder scratch;
  const absl::Status held = CheckTruncation(c, scratch.path());
  EXPECT_TRUE(absl::IsFailedPrecondition(held)) << "a cut inside a record was silent, too";
}

}  // namespace
}  // namespace shardpack::testing
