#pragma once

namespace train_gpt {

// A matrix somewhere in memory, row by row; `stride` is the distance between two rows.
template <typename Real>
struct Matrix {
    const Real* data;
    int stride;
    bool transposed = false;
};

template <typename Real>
Matrix<Real> transpose(Matrix<Real> matrix) {
    matrix.transposed = !matrix.transposed;
    return matrix;
}

struct ProductSize {
    int rows;     // of the result
    int columns;  // of the result
    int inner;
};

// result = scale * left * right + keep * result, by BLAS, in the calling thread.
void multiply(ProductSize size, float scale, Matrix<float> left, Matrix<float> right, float keep,
              float* result, int result_stride);
void multiply(ProductSize size, double scale, Matrix<double> left, Matrix<double> right,
              double keep, double* result, int result_stride);

// One worker is one thread: the launcher places workers, BLAS must not start its own. Call once at
// the start of the program.
void use_one_blas_thread();

}  // namespace train_gpt
