// FolderLabels: predicts the labels that extracted files would get if they were packed as a folder.
//
//   FolderLabels labels(dataset.classes(), /*whole=*/true);
//   labels.Add("cat/1.jpg", 2, /*in_file=*/false);   // each sample
//   labels.Doubt();   // "" if their folders give the same labels
//
// Thread-safety: one caller.
#ifndef SHARDPACK_CLI_COMMANDS_FOLDER_LABELS_H_
#define SHARDPACK_CLI_COMMANDS_FOLDER_LABELS_H_

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace shardpack::cli {

class FolderLabels {
 public:
  // `whole`: all samples, or all of a split, are extracted. Otherwise the numbers are not expected
  // to stay the same.
  FolderLabels(std::span<const std::string> classes, bool whole)
      : classes_(classes), whole_(whole) {}

  // `in_file`: the label is written next to the image, as a .cls file.
  void Add(std::string_view path, int64_t label, bool in_file);
  std::string Doubt() const;

 private:
  std::string OtherNumbers() const;

  const std::span<const std::string> classes_;
  const bool whole_;
  uint64_t elsewhere_ = 0, in_files_ = 0, without_ = 0;
  std::string first_elsewhere_;  // "cat/1.jpg is dog"
  std::set<int64_t> seen_;
};

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_FOLDER_LABELS_H_
