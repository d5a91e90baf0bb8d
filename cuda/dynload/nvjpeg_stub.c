/* Libraries that call themselves nvJPEG, for tests: of a version, with or without what decoding
 * needs. */
int nvjpegGetProperty(int property, int* value) {
  *value = property == 0 ? STUB_MAJOR : 7;
  return 0;
}

#ifdef STUB_CREATES
int nvjpegCreateEx(void) { return 6; }
int nvjpegDestroy(void) { return 0; }
#endif
