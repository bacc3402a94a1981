// A library that is not NCCL.
extern "C" int ncclGetVersion(int* version) {
    *version = 0;
    return 0;
}
