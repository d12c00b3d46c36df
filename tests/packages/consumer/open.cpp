// SPDX-License-Identifier: Apache-2.0
//
// neon8.hpp: opens a model with open dimensions at its usual shapes, runs it at the largest, and
// writes the outputs, one after another. Its input is float32, value k is k % 17 - 8.
//
//   open MODEL.n8 OUT
#include <neon8.hpp>

#include <fstream>

int main(int argc, char **argv) {
    std::ifstream file(argc == 3 ? argv[1] : "", std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    const auto opened = neon8::Model::open(bytes.data(), bytes.size()).value();
    std::vector<neon8::Shape> shapes(1);
    n8_dimension limits;
    for (size_t axis = 0; n8_model_bounds(opened.get(), 0, axis, &limits) == N8_OK; axis++) {
        shapes[0][axis] = limits.hi;
    }
    shapes[0][0] += 1;
    const auto beyond = opened.reshape(shapes);
    if (beyond || beyond.error().status != N8_E_SHAPE || beyond.error().axis != 0) {
        return 1;
    }
    shapes[0][0] -= 1;
    const auto model = opened.reshape(shapes).value();
    auto session = model.session().value();
    std::vector<float> image(model.input(0)->size / sizeof(float));
    for (size_t k = 0; k < image.size(); k++) {
        image[k] = static_cast<float>(k % 17) - 8.0f;
    }
    std::vector<std::vector<float>> values;
    std::vector<neon8::Output> outputs;
    while (const auto info = model.output(values.size())) {
        values.emplace_back(info.value().size / sizeof(float));
    }
    outputs.assign(values.begin(), values.end());
    const neon8::Input inputs[] = {image};
    if (!session.run(inputs, outputs)) {
        return 2;
    }
    std::ofstream results(argv[2], std::ios::binary);
    for (const auto &output : values) {
        results.write(reinterpret_cast<const char *>(output.data()),
                      static_cast<std::streamsize>(output.size() * sizeof(float)));
    }
    return results ? 0 : 3;
}
