// SPDX-License-Identifier: Apache-2.0
//
// neon8.h in C++: opens a model with open dimensions at its usual shapes, runs it at the largest,
// and writes the outputs, one after another. All inputs are float32, value k of each k % 17 - 8.
//
//   open MODEL.n8 OUT
#include "neon8.h"

#include <array>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

namespace {

struct Close {
    void operator()(n8_model *model) const {
        n8_model_close(model);
    }
    void operator()(n8_session *session) const {
        n8_session_destroy(session);
    }
};
using Model = std::unique_ptr<n8_model, Close>;
using Session = std::unique_ptr<n8_session, Close>;
using Shape = std::array<int32_t, 8>;

Model at_largest(const n8_model *model, size_t inputs) {
    std::vector<Shape> shapes(inputs);
    for (size_t i = 0; i < inputs; i++) {
        n8_dimension limits;
        for (size_t axis = 0; n8_model_bounds(model, i, axis, &limits) == N8_OK; axis++) {
            shapes[i][axis] = limits.hi;
        }
    }
    n8_model *made = nullptr;
    n8_model_error error;
    const auto rows = reinterpret_cast<const int32_t (*)[8]>(shapes.data());
    shapes[0][0] += 1;
    if (n8_model_reshape(model, rows, &made, &error) != N8_E_SHAPE || error.axis != 0) {
        return nullptr;
    }
    shapes[0][0] -= 1;
    return n8_model_reshape(model, rows, &made, &error) == N8_OK ? Model(made) : nullptr;
}

std::vector<std::vector<float>> buffers(const n8_model *model, n8_io which) {
    std::vector<std::vector<float>> found;
    n8_tensor_info info;
    while (n8_model_io(model, which, found.size(), &info) == N8_OK) {
        found.emplace_back(info.size / sizeof(float));
    }
    return found;
}

int run(const char *path, const char *out) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    n8_model *made = nullptr;
    if (n8_model_open(bytes.data(), bytes.size(), nullptr, &made, nullptr) != N8_OK) {
        return 2;
    }
    const Model opened(made);
    n8_model_facts facts;
    if (n8_model_describe(opened.get(), &facts) != N8_OK) {
        return 3;
    }
    const Model model = at_largest(opened.get(), facts.input_count);
    n8_session *begun = nullptr;
    if (!model || n8_session_create(model.get(), nullptr, &begun) != N8_OK) {
        return 4;
    }
    const Session session(begun);
    auto inputs = buffers(model.get(), N8_INPUT), outputs = buffers(model.get(), N8_OUTPUT);
    std::vector<const void *> given;
    std::vector<void *> taken;
    for (auto &input : inputs) {
        for (size_t k = 0; k < input.size(); k++) {
            input[k] = static_cast<float>(k % 17) - 8.0f;
        }
        given.push_back(input.data());
    }
    for (auto &output : outputs) {
        taken.push_back(output.data());
    }
    if (n8_session_run(session.get(), given.data(), taken.data()) != N8_OK) {
        return 5;
    }
    std::ofstream results(out, std::ios::binary);
    for (const auto &output : outputs) {
        results.write(reinterpret_cast<const char *>(output.data()),
                      static_cast<std::streamsize>(output.size() * sizeof(float)));
    }
    return results ? 0 : 6;
}

} // namespace

int main(int argc, char **argv) {
    return argc == 3 ? run(argv[1], argv[2]) : 1;
}
