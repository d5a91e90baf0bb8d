// ScratchFolder: a new folder for one test, removed with its content by the destructor.
//
//   ScratchFolder scratch;
//   std::string path = scratch.File("train-000000.tar");
//   EXPECT_THAT(scratch.Names(), IsEmpty());
//
// Lifetime: owns the folder.
// Thread-safety: const methods from any thread.
// Errors: ends the process if the folder cannot be created.
#ifndef SHARDPACK_FORMATS_TESTING_SCRATCH_FOLDER_H_
#define SHARDPACK_FORMATS_TESTING_SCRATCH_FOLDER_H_

#include <string>
#include <vector>

namespace shardpack::testing {

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  std::vector<std::string> Names() const;  // sorted; files and folders, not recursive

 private:
  std::string path_;
};

}  // namespace shardpack::testing

#endif  // SHARDPACK_FORMATS_TESTING_SCRATCH_FOLDER_H_
