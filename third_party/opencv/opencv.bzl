"""How to compile what includes OpenCV's headers."""

OPENCV_COPTS = ["-isystem/usr/include/opencv4"]
