// ScratchFolder: a fresh folder for one test, gone with all it holds when the object dies.
//
//   ScratchFolder scratch;
//   std::string path = scratch.File("train-000000.tar");
//   EXPECT_THAT(scratch.Names(), IsEmpty());
//
// Lifetime: owns the folder.
// Thread-safety: const methods from any thread.
// Errors: a folder that cannot be made ends the process.
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
  std::vector<std::string> Names()
      const;  // sorted; of files and folders, not of what lies in those

 private:
  std::string path_;
};

}  // namespace shardpack::testing

#endif  // SHARDPACK_FORMATS_TESTING_SCRATCH_FOLDER_H_
