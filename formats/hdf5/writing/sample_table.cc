#include "formats/hdf5/writing/sample_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "formats/hdf5/hdf5_layout.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {

absl::Status SampleTable::CheckSpec(const ShardSpec& spec) {
  for (size_t f = 1; f < spec.fields.size(); ++f) {
    RETURN_IF_ERROR(CheckFieldName(spec.fields[f].name));
    for (size_t other = 0; other < f; ++other) {
      if (spec.fields[other].name == spec.fields[f].name) {
        return absl::InvalidArgumentError(
            absl::StrCat("two fields are named ", EscapeForTerminal(spec.fields[f].name)));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status SampleTable::Refuse(const SampleView& sample, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("hdf5 cannot hold the sample of key ",
                                                 EscapeForTerminal(sample.key), ": ",
                                                 std::string(why)));
}

absl::Status SampleTable::Check(const SampleView& sample) const {
  if (samples() >= spec_.max_records) return Refuse(sample, "the shard is planned for fewer");
  if (sample.key.size() > kMaxHdf5KeyBytes) {
    return Refuse(sample, absl::StrCat("a key has at most ", kMaxHdf5KeyBytes, " bytes"));
  }
  if (sample.key.find('\0') != std::string_view::npos) {
    return Refuse(sample, "a key cannot hold a NUL, which ends a string");
  }
  bool same = sample.fields.size() == spec_.fields.size();
  for (size_t f = 1; same && f < sample.fields.size(); ++f) {
    same = sample.fields[f].name == spec_.fields[f].name;
  }
  return same ? absl::OkStatus() : Refuse(sample, "its fields are not those of the shard");
}

void SampleTable::Add(const SampleView& sample) {
  labels_.push_back(sample.label);
  keys_.append(sample.key);
  key_ends_.push_back(keys_.size());
  max_key_bytes_ = std::max(max_key_bytes_, sample.key.size());
}

absl::Status SampleTable::Write(Hdf5Output& output, std::string_view layout) const {
  const size_t width = std::max<size_t>(max_key_bytes_, 1);
  std::string cells(samples() * width, '\0');
  uint64_t begin = 0;
  for (uint64_t i = 0; i < samples(); ++i) {
    std::copy(keys_.begin() + static_cast<ptrdiff_t>(begin),
              keys_.begin() + static_cast<ptrdiff_t>(key_ends_[i]),
              cells.begin() + static_cast<ptrdiff_t>(i * width));
    begin = key_ends_[i];
  }
  absl::Status status = output.WriteInt64(kLabelsName, labels_);
  status.Update(output.WriteStrings(kKeysName, width, cells));
  status.Update(output.SetText("format", "shardpack"));
  status.Update(output.SetText("version", "1"));
  status.Update(output.SetText("layout", layout));
  status.Update(output.SetText("split", spec_.split));
  status.Update(output.SetInteger("label_base", 0));
  if (spec_.classes.size() <= kMaxClassesInAttribute) {
    status.Update(output.SetTexts(kClassesName, spec_.classes));
    return status;
  }
  size_t class_width = 1;
  for (const std::string& name : spec_.classes) class_width = std::max(class_width, name.size());
  std::string class_cells(spec_.classes.size() * class_width, '\0');
  for (size_t i = 0; i < spec_.classes.size(); ++i) {
    std::copy(spec_.classes[i].begin(), spec_.classes[i].end(),
              class_cells.begin() + static_cast<ptrdiff_t>(i * class_width));
  }
  status.Update(output.WriteStrings(kClassesName, class_width, class_cells));
  return status;
}

}  // namespace shardpack
