#include "examples/04_train_gpt/model/matrix.hpp"

#include <cblas.h>

namespace train_gpt {
namespace {

template <typename Real>
CBLAS_TRANSPOSE orientation(const Matrix<Real>& matrix) {
    return matrix.transposed ? CblasTrans : CblasNoTrans;
}

}  // namespace

void multiply(ProductSize size, float scale, Matrix<float> left, Matrix<float> right, float keep,
              float* result, int result_stride) {
    cblas_sgemm(CblasRowMajor, orientation(left), orientation(right), size.rows, size.columns,
                size.inner, scale, left.data, left.stride, right.data, right.stride, keep, result,
                result_stride);
}

void multiply(ProductSize size, double scale, Matrix<double> left, Matrix<double> right,
              double keep, double* result, int result_stride) {
    cblas_dgemm(CblasRowMajor, orientation(left), orientation(right), size.rows, size.columns,
                size.inner, scale, left.data, left.stride, right.data, right.stride, keep, result,
                result_stride);
}

void use_one_blas_thread() {
    openblas_set_num_threads(1);
}

}  // namespace train_gpt
