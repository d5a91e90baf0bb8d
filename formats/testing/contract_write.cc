// Checks that written data can be read back.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "formats/io/staged_file.h"
#include "formats/testing/contract_checks.h"

namespace shardpack::testing {
namespace {

// Writes, scans and compares.
absl::Status CheckSamples(const FormatCase& c, std::span<const OwnedSample> samples,
                          const std::string& scratch, const std::string& name) {
  absl::StatusOr<std::string> bytes = WriteShard(*c.format, c.spec, samples, scratch + "/" + name);
  if (!bytes.ok()) return Broken(name, ": writing: ", bytes.status().ToString());
  absl::Status same = CompareWithSamples(c, samples, ScanCase(c, *bytes), *bytes);
  return same.ok() ? same : Broken(name, ": ", std::string(same.message()));
}

absl::Status CompareField(const std::pair<std::string, std::string>& written,
                          const FoundRecord& found, std::string_view bytes) {
  const FoundField* field = found.Find(written.first);
  if (field == nullptr) return Broken("field ", written.first, " is not found");
  if (field->length != written.second.size()) {
    return Broken("field ", written.first, " has ", field->length, " bytes, expected ",
                  written.second.size());
  }
  if (field->hash != Xxh3_64(AsBytes(written.second)))
    return Broken("field ", written.first, ": wrong hash");
  if (bytes.substr(field->offset, field->length) != written.second) {
    return Broken("field ", written.first, ": its extent does not point at its bytes");
  }
  if (field->offset < found.offset || field->offset + field->length > found.offset + found.length) {
    return Broken("field ", written.first, " lies outside its record");
  }
  return absl::OkStatus();
}

absl::Status CompareRecord(const FormatCase& c, const OwnedSample& sample, const FoundRecord& found,
                           std::string_view bytes) {
  if (c.keeps_key ? found.key != sample.key : !found.key.empty() && found.key != sample.key) {
    return Broken("key ", found.key, ", expected ", sample.key);
  }
  if (c.keeps_label && found.label != sample.label) {
    return Broken("label ", found.label, ", expected ", sample.label);
  }
  if (c.keeps_source_path && found.source_path != sample.source_path) {
    return Broken("source path ", found.source_path, ", expected ", sample.source_path);
  }
  if (found.fields.empty() || found.fields[0].name != kImageField)
    return Broken("field 0 is not the image");
  for (const auto& written : sample.fields) {
    absl::Status same = CompareField(written, found, bytes);
    if (!same.ok()) return same;
  }
  return absl::OkStatus();
}

absl::Status CheckRecordsAreApart(const ScanResult& scan) {
  std::vector<Extent> extents;
  for (const FoundRecord& found : scan.records) extents.push_back({found.offset, found.length});
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i - 1].offset + extents[i - 1].length > extents[i].offset) {
      return Broken("two records share bytes at offset ", extents[i].offset);
    }
  }
  return absl::OkStatus();
}

uint64_t BoundOf(const FormatCase& c, const ShardSpec& spec, const OwnedSample& sample) {
  std::vector<uint64_t> field_bytes;
  return c.format->record_bound(spec, ShapeOf(sample, field_bytes));
}

absl::Status CheckMadeFiles(FileMaker make, const SidecarInput& input) {
  auto first = make(input), second = make(input);
  if (!first.ok() || !second.ok()) return Broken("sidecar: ", first.status().ToString());
  if (first->empty() || first->size() != second->size())
    return Broken("sidecars: another number of files");
  std::set<std::string> names = {std::string(kManifestName)};
  for (const ManifestShard& shard : input.manifest.shards) names.insert(shard.name);
  for (size_t i = 0; i < first->size(); ++i) {
    const std::string& name = (*first)[i].name;
    if (name != (*second)[i].name || (*first)[i].bytes != (*second)[i].bytes) {
      return Broken("sidecar ", name, " made twice differs");
    }
    if (!IsDatasetFileName(name)) return Broken("sidecar name ", name);
    if (!names.insert(name).second) return Broken("a name twice: ", name);
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<OwnedSample> SamplesFor(const FormatCase& c, GeneratorOptions options) {
  options.extra_fields = c.extra_fields;
  options.raw_image = c.spec.raw_image;
  return GenerateSamples(options);
}

void SetPayload(const FormatCase& c, uint64_t bytes, Random& random, OwnedSample& sample) {
  const bool raw = c.spec.raw_image.format == ImageFormat::kRaw;
  sample.fields[0].second =
      raw ? random.Bytes(RawImageBytes(c.spec.raw_image)) : MakeRandomPayload(bytes, random);
  if (!raw) sample.image.format = ImageFormat::kJpeg;
}

absl::Status CheckScan(const ScanResult& scan, std::string_view bytes) {
  if (!scan.status.ok())
    return Broken("damage is a finding, not a status: ", scan.status.ToString());
  const auto outside = [&](uint64_t offset, uint64_t length) {
    return offset > bytes.size() || length > bytes.size() - offset;
  };
  for (size_t i = 0; i < scan.records.size(); ++i) {
    const FoundRecord& record = scan.records[i];
    if (outside(record.offset, record.length))
      return Broken("record ", i, " lies outside the file");
    for (const FoundField& field : record.fields) {
      if (outside(field.offset, field.length)) {
        return Broken("record ", i, ": field ", field.name, " lies outside the file");
      }
      if (field.hash != Xxh3_64(AsBytes(bytes.substr(field.offset, field.length)))) {
        return Broken("record ", i, ": the hash of field ", field.name,
                      " is not that of its bytes");
      }
    }
  }
  if (scan.digest != Xxh3_128(AsBytes(bytes)))
    return Broken("the reader's digest is not the file's");
  return absl::OkStatus();
}

absl::Status CompareWithSamples(const FormatCase& c, std::span<const OwnedSample> samples,
                                const ScanResult& scan, std::string_view bytes) {
  absl::Status sound = CheckScan(scan, bytes);
  if (!sound.ok()) return sound;
  if (!scan.Complaints().empty()) return Broken("a whole shard has findings:\n", scan.Complaints());
  if (scan.records.size() != samples.size()) {
    return Broken(scan.records.size(), " records, expected ", samples.size());
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    absl::Status same = CompareRecord(c, samples[i], scan.records[i], bytes);
    if (!same.ok()) return Broken("record ", i, ": ", std::string(same.message()));
  }
  return CheckRecordsAreApart(scan);
}

absl::Status CheckDescription(const FormatCase& c, const std::string& scratch) {
  const Format& format = *c.format;
  if (format.name.empty() || format.doc.empty()) return Broken("no name or no doc");
  if (format.layouts.empty() || FindLayout(format, c.spec.layout) == nullptr)
    return Broken("no such layout");
  if (format.traits.max_record_bytes == 0) return Broken("max_record_bytes is 0");
  if (format.scanner == nullptr) return Broken("no scanner");
  std::set<std::string> names;
  for (uint32_t i = 0; i < 12; ++i) {
    const std::string name = ShardName(format, c.spec.layout, "train", i, 12);
    if (!IsDatasetFileName(name)) return Broken("shard name ", name);
    if (!names.empty() && name <= *names.rbegin())
      return Broken("shard names do not ascend: ", name);
    names.insert(name);
  }
  if (names.count(ShardName(format, c.spec.layout, "val", 0, 12)) != 0)
    return Broken("two splits, one shard name");
  absl::StatusOr<std::string> bytes = WriteShard(format, c.spec, SamplesFor(c), scratch + "/shard");
  if (!bytes.ok()) return bytes.status();
  const std::string_view head = std::string_view(*bytes).substr(0, 1024);
  const std::string_view file_name =
      format.traits.data_file.empty() ? std::string_view(*names.begin()) : format.traits.data_file;
  if (!format.sniff(AsBytes(head), file_name)) return Broken("sniff does not know its own shard");
  ShardSpec unknown = c.spec;
  unknown.layout = "no such layout";
  auto file = StagedFile::Create(scratch + "/unknown");
  if (!file.ok()) return file.status();
  const absl::Status refused = format.create(**file, unknown).status();
  if (!absl::IsInvalidArgument(refused))
    return Broken("an unknown layout gives ", refused.ToString());
  return absl::OkStatus();
}

absl::Status CheckRoundTrip(const FormatCase& c, const std::string& scratch) {
  absl::Status mixed = CheckSamples(c, SamplesFor(c, {.count = 60}), scratch, "mixed");
  if (!mixed.ok()) return mixed;
  absl::Status one = CheckSamples(c, SamplesFor(c, {.seed = 2, .count = 1}), scratch, "one");
  if (!one.ok()) return one;
  absl::Status plain =
      CheckSamples(c, SamplesFor(c, {.seed = 3, .classes = 0}), scratch, "no label");
  if (!plain.ok()) return plain;
  // Payloads around every size at which a container pads or a reader's block ends.
  std::vector<OwnedSample> samples = SamplesFor(c, {.seed = 4, .count = 24});
  Random random(5);
  const uint64_t sizes[] = {511,  512,  513,    1023,   1024,   4095,
                            4096, 4097, 262143, 262144, 262145, 300000};
  for (size_t i = 0; i < samples.size(); ++i) {
    SetPayload(c, sizes[i % std::size(sizes)], random, samples[i]);
  }
  return CheckSamples(c, samples, scratch, "borders");
}

absl::Status CheckNoSamples(const FormatCase& c, const std::string& scratch) {
  absl::StatusOr<std::string> bytes = WriteShard(*c.format, c.spec, {}, scratch + "/shard");
  if (!bytes.ok()) return Broken("writing: ", bytes.status().ToString());
  if (bytes->size() > c.format->traits.shard_overhead_bytes) {
    return Broken("an empty shard has ", bytes->size(), " bytes, shard_overhead_bytes is ",
                  c.format->traits.shard_overhead_bytes);
  }
  // Whether this is a finding is up to the format.
  const ScanResult scan = ScanCase(c, *bytes);
  if (!scan.records.empty()) return Broken("records in an empty shard");
  return CheckScan(scan, *bytes);
}

absl::Status CheckEmptyField(const FormatCase& c, const std::string& scratch) {
  for (size_t field = 0; field <= c.extra_fields.size(); ++field) {
    std::vector<OwnedSample> samples = SamplesFor(c, {.count = 3});
    samples[1].fields[field].second.clear();
    absl::StatusOr<std::string> bytes =
        WriteShard(*c.format, c.spec, samples, absl::StrCat(scratch, "/", field));
    // A format may reject such a sample, but must not lose it.
    if (absl::IsInvalidArgument(bytes.status())) continue;
    if (!bytes.ok()) return Broken("field ", field, ": writing: ", bytes.status().ToString());
    ScanResult scan = ScanCase(c, *bytes);
    scan.findings = FindingList();  // it may also be a finding
    absl::Status same = CompareWithSamples(c, samples, scan, *bytes);
    if (!same.ok()) return Broken("field ", field, ": ", std::string(same.message()));
  }
  return absl::OkStatus();
}

absl::Status CheckHugeRecord(const FormatCase& c, const std::string& scratch) {
  if (c.spec.raw_image.format == ImageFormat::kRaw) {
    FormatCase huge = c;
    huge.spec.raw_image = RawImageInfo(2048, 2500, 4);
    return CheckSamples(huge, SamplesFor(huge, {.count = 3}), scratch, "huge");
  }
  std::vector<OwnedSample> samples = SamplesFor(c, {.count = 3});
  Random random(20);
  const uint64_t bytes = std::min(c.huge_bytes, c.format->traits.max_record_bytes / 2);
  SetPayload(c, bytes, random, samples[1]);
  return CheckSamples(c, samples, scratch, "huge");
}

absl::Status CheckOddKeys(const FormatCase& c, const std::string& scratch) {
  const size_t limit = FindLayout(*c.format, c.spec.layout)->max_key_bytes;
  const size_t longest = limit == 0 ? 1000 : limit;
  std::set<std::string> keys = {"0", "-", "=", "a/b/c/d/e/f/g", "x__y", "1,2+3@4=5-6_7"};
  Random random(30);
  for (size_t bytes = 1; bytes <= std::min<size_t>(longest, 4096); bytes += bytes < 300 ? 7 : 501) {
    keys.insert(MakeLongKey(bytes, random));
  }
  keys.insert(MakeLongKey(std::min<size_t>(longest, 65536), random));
  std::erase_if(keys, [&](const std::string& key) { return key.size() > longest; });
  std::vector<OwnedSample> samples = SamplesFor(c, {.count = keys.size()});
  auto key = keys.begin();  // ascending
  for (OwnedSample& sample : samples) sample.key = *key++;
  return CheckSamples(c, samples, scratch, "keys");
}

absl::Status CheckRefusedSample(const FormatCase& c, const std::string& scratch) {
  const size_t longest = FindLayout(*c.format, c.spec.layout)->max_key_bytes;
  if (longest == 0 || longest > (1 << 20)) return absl::OkStatus();  // no key is too long
  const std::vector<OwnedSample> samples = SamplesFor(c, {.count = 5});
  absl::StatusOr<std::string> expected =
      WriteShard(*c.format, c.spec, samples, scratch + "/without");
  if (!expected.ok()) return Broken("writing: ", expected.status().ToString());
  OwnedSample refused = samples[2];
  Random random(31);
  refused.key = refused.key + MakeLongKey(longest + 1, random);
  auto file = StagedFile::Create(scratch + "/with.part");
  if (!file.ok()) return file.status();
  const ShardSpec spec = SpecFor(c.spec, samples);
  auto writer = c.format->create(**file, spec);
  if (!writer.ok()) return Broken("create: ", writer.status().ToString());
  for (size_t i = 0; i < samples.size(); ++i) {
    if (i == 3) {
      const BorrowedSample borrowed = refused.Borrow();
      const absl::Status status = (*writer)->Append(borrowed.view);
      if (!absl::IsInvalidArgument(status))
        return Broken("a key over max_key_bytes gives ", status.ToString());
      if (std::string(status.message()).find(samples[2].key) == std::string::npos) {
        return Broken("the message does not name the key: ", status.ToString());
      }
    }
    const BorrowedSample borrowed = samples[i].Borrow();
    absl::Status appended = (*writer)->Append(borrowed.view);
    if (!appended.ok()) return Broken("after a refused sample: ", appended.ToString());
  }
  absl::Status finished = (*writer)->Finish();
  if (finished.ok()) finished = (*file)->Publish(scratch + "/with");
  if (!finished.ok()) return Broken("finish: ", finished.ToString());
  absl::StatusOr<std::string> actual = ReadWholeFile(scratch + "/with", uint64_t{1} << 30);
  if (!actual.ok()) return actual.status();
  return *actual == *expected ? absl::OkStatus() : Broken("a refused sample changed the shard");
}

absl::Status CheckRecordBound(const FormatCase& c, const std::string& scratch) {
  std::vector<OwnedSample> samples = SamplesFor(c, {.count = 40});
  Random random(40);
  for (size_t i = 0; i < samples.size(); ++i) {
    SetPayload(c, 4 + random.Below(i % 4 == 0 ? 100000 : 600), random, samples[i]);
  }
  absl::StatusOr<std::string> bytes = WriteShard(*c.format, c.spec, samples, scratch + "/all");
  if (!bytes.ok()) return Broken("writing: ", bytes.status().ToString());
  const ScanResult scan = ScanCase(c, *bytes);
  if (scan.records.size() != samples.size()) return Broken("records were lost");
  const ShardSpec spec = SpecFor(c.spec, samples);
  uint64_t sum = c.format->traits.shard_overhead_bytes;
  for (size_t i = 0; i < samples.size(); ++i) {
    const uint64_t bound = BoundOf(c, spec, samples[i]);
    if (bound < scan.records[i].length) {
      return Broken("record ", i, " has ", scan.records[i].length, " bytes, record_bound says ",
                    bound);
    }
    sum += bound;
    // Alone, it may need bytes that it shares with others in a longer shard.
    absl::StatusOr<std::string> one =
        WriteShard(*c.format, c.spec, std::span(&samples[i], 1), absl::StrCat(scratch, "/", i));
    if (!one.ok()) return Broken("writing: ", one.status().ToString());
    if (one->size() > bound + c.format->traits.shard_overhead_bytes) {
      return Broken("a shard of sample ", i, " alone has ", one->size(),
                    " bytes, expected at most ", bound + c.format->traits.shard_overhead_bytes);
    }
  }
  if (bytes->size() > sum)
    return Broken("the shard has ", bytes->size(), " bytes, expected at most ", sum);
  return absl::OkStatus();
}

absl::Status CheckSidecars(const FormatCase& c, const std::string& scratch) {
  Manifest manifest;
  manifest.format = std::string(c.format->name);
  manifest.layout = std::string(c.spec.layout);
  std::vector<ShardIndex> indexes;
  for (uint32_t i = 0; i < 2; ++i) {
    const std::vector<OwnedSample> samples = SamplesFor(c, {.seed = 50 + i, .count = 7});
    const std::string name = ShardName(*c.format, c.spec.layout, "train", i, 2);
    std::string path = scratch + "/" + name;
    if (!c.format->traits.data_file.empty()) {
      absl::Status made = MakeDirectory(path);
      if (!made.ok()) return made;
      path += "/" + std::string(c.format->traits.data_file);
    }
    absl::StatusOr<std::string> bytes = WriteShard(*c.format, c.spec, samples, path);
    if (!bytes.ok()) return bytes.status();
    absl::StatusOr<ShardIndex> index = IndexOf(ScanCase(c, *bytes), samples, bytes->size());
    if (!index.ok()) return index.status();
    indexes.push_back(*std::move(index));
    manifest.shards.push_back(
        {name, "train", bytes->size(), samples.size(), Xxh3_128(AsBytes(*bytes)), {}, ""});
  }
  manifest.splits = {{"train", 14}};
  const SidecarInput input{
      .root = scratch, .manifest = manifest, .indexes = indexes, .scratch = scratch};
  const LayoutSpec* layout = FindLayout(*c.format, c.spec.layout);
  if (layout != nullptr && layout->files != nullptr) {
    absl::Status made = CheckMadeFiles(layout->files, input);
    if (!made.ok()) return made;
  }
  for (const SidecarSpec& sidecar : c.format->sidecars) {
    absl::Status made = CheckMadeFiles(sidecar.make, input);
    if (!made.ok()) return made;
  }
  return absl::OkStatus();
}

}  // namespace shardpack::testing
