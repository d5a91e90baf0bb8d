// SHARDPACK_HOST_DEVICE marks plain functions that CUDA kernels share with the CPU.
//
//   SHARDPACK_HOST_DEVICE inline int Twice(int x) { return 2 * x; }
//
// Empty for every compiler except nvcc.
#ifndef SHARDPACK_IMAGES_PIXELS_HOST_DEVICE_H_
#define SHARDPACK_IMAGES_PIXELS_HOST_DEVICE_H_

#ifdef __CUDACC__
#define SHARDPACK_HOST_DEVICE __host__ __device__
#else
#define SHARDPACK_HOST_DEVICE
#endif

#endif  // SHARDPACK_IMAGES_PIXELS_HOST_DEVICE_H_
