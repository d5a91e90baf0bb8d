// CoresOfRank: how many of a node's cores one of several training processes may use.
//
//   int threads = CoresOfRank();   // 16 on a node of 128 cores, where torchrun started 8
//
// All processes of a training run on a node do the same, so each has the same share: of as many
// ranks as $LOCAL_WORLD_SIZE (torchrun) or $OMPI_COMM_WORLD_LOCAL_SIZE (Open MPI) says, else one.
// What they share are the cores of their launcher: the nearest process above that was not itself
// started as a rank. A binding, cpuset or quota that the launcher has too is divided; one that this
// process has alone is its own, and kept, up to its share. What other processes run there is not
// known.
//
// Thread-safety: any thread, as long as nobody changes the environment.
// Errors: none; what cannot be read, and variables that are not numbers, count as missing.
#ifndef SHARDPACK_FORMATS_IO_RANK_CORES_H_
#define SHARDPACK_FORMATS_IO_RANK_CORES_H_

#include <string>

namespace shardpack {

int CoresOfRank();  // >= 1, and at most AvailableCores (formats/io/resources.h)
int RanksOfNode();  // >= 1
// CoresOfRank for a process with `own` cores, one of so many ranks that share the `node`'s.
int ShareOfCores(int node, int own, int ranks);
// The cores that the launcher of a process may use, by its binding and its control groups' quotas
// (cgroups v2); 0: not known. `root` is where /proc and /sys are: empty, but in tests.
int CoresOfLauncher(const std::string& root, int process);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_RANK_CORES_H_
