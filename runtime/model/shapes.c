// SPDX-License-Identifier: Apache-2.0
#include "shapes.h"

#include "limits.h"
#include "size.h"

#include <math.h>
#include <string.h>

enum { MOST = 1 << 20 }; // of sizes, forms and words

// The largest arrays that forms may ask for together, before anybody has set a limit.
static const size_t MOST_BYTES = (size_t)1 << 28;

// Parts --------------------------------------------------------------------------------

enum n8_status n8_read_shapes(struct n8_reader *r, uint64_t *end) {
    const struct n8_file_shapes *s = &r->shapes.table;
    const struct {
        uint64_t at, count, entry;
    } parts[] = {
        {s->symbols, s->symbol_count, sizeof(struct n8_file_symbol)},
        {s->sizes, s->size_count, sizeof(struct n8_file_size)},
        {s->forms, s->form_count, sizeof(struct n8_file_form)},
        {s->words, s->word_count, sizeof(int32_t)},
    };
    if (s->symbol_count < 1 || s->symbol_count > N8_FORMAT_MAX_SYMBOLS || s->size_count > MOST ||
        s->form_count > MOST || s->word_count > MOST) {
        return n8_malformed(r, "there is no open dimension, or there is more than a file may have");
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        N8_TRY(n8_check_part(r, parts[i].at, parts[i].count, parts[i].entry, 8, end));
    }
    uint64_t words = 0;
    for (uint32_t i = 0; i < s->form_count; i++) {
        struct n8_file_form form;
        memcpy(&form, r->bytes + s->forms + i * sizeof form, sizeof form);
        words += form.word_count;
        const bool segments = form.kind == N8_FORM_INTEGERS || form.kind == N8_FORM_FLOATS;
        const bool whole = segments && form.word_count % N8_SEGMENT_WORDS == 0;
        if (form.word_count < 1 || (form.kind != N8_FORM_NUMBERS && !whole)) {
            return n8_malformed(r, "a form is of no known kind, or has too few words");
        }
    }
    return words == s->word_count ? N8_OK : n8_malformed(r, "a word belongs to no form");
}

// Symbols ------------------------------------------------------------------------------

static struct n8_file_symbol symbol_at(const struct n8_reader *r, uint32_t index) {
    struct n8_file_symbol symbol;
    memcpy(&symbol, r->bytes + r->shapes.table.symbols + index * sizeof symbol, sizeof symbol);
    return symbol;
}

static struct n8_file_size size_at(const struct n8_reader *r, uint32_t index) {
    struct n8_file_size size;
    memcpy(&size, r->bytes + r->shapes.table.sizes + index * sizeof size, sizeof size);
    return size;
}

static bool fits(const struct n8_file_symbol *symbol, int32_t value) {
    return n8_in_range(value, symbol->lo, symbol->hi) && (value - symbol->lo) % symbol->step == 0;
}

static enum n8_status open_dimension(const struct n8_reader *r, int32_t number, uint32_t *symbol) {
    const int64_t index = -1 - (int64_t)number;
    if (index >= r->shapes.table.size_count) {
        return n8_malformed(r, "a dimension is no size of the file");
    }
    const struct n8_file_size size = size_at(r, (uint32_t)index);
    if (size.kind != N8_SIZE_SYMBOL || size.a < 0 ||
        (uint32_t)size.a >= r->shapes.table.symbol_count) {
        return n8_malformed(r, "an open dimension of an input is none that a caller may choose");
    }
    *symbol = (uint32_t)size.a;
    return N8_OK;
}

// The row of input `index`.
static enum n8_status input_at(const struct n8_reader *r, uint32_t index,
                               struct n8_file_tensor *row) {
    uint32_t tensor;
    memcpy(&tensor, r->bytes + r->header.links + index * sizeof tensor, sizeof tensor);
    if (tensor >= r->header.tensor_count) {
        return n8_malformed(r, "a link names no tensor");
    }
    memcpy(row, r->bytes + r->header.tensors + tensor * sizeof *row, sizeof *row);
    n8_blame_tensor(r, tensor);
    return row->rank <= N8_FORMAT_MAX_RANK ? N8_OK : n8_malformed(r, "its rank is above 8");
}

enum n8_status n8_bind_shapes(struct n8_reader *r, const int32_t (*shapes)[8], bool largest) {
    int32_t *values = r->shapes.symbols; // 0: not met yet
    memset(values, 0, sizeof r->shapes.symbols);
    for (uint32_t i = 0; i < r->shapes.table.symbol_count; i++) {
        const struct n8_file_symbol symbol = symbol_at(r, i);
        if (symbol.lo < 1 || symbol.hi > N8_FORMAT_MAX_DIM || symbol.step < 1 ||
            symbol.lo > symbol.hi || !fits(&symbol, symbol.usual)) {
            return n8_malformed(r, "the bounds of an open dimension are empty or beyond 2^20");
        }
    }
    for (uint32_t i = 0; i < r->header.input_count; i++) {
        struct n8_file_tensor row;
        N8_TRY(input_at(r, i, &row));
        for (uint32_t axis = 0; axis < row.rank; axis++) {
            r->error->axis = (int32_t)axis;
            if (row.dims[axis] >= 0) {
                if (shapes != NULL && shapes[i][axis] != row.dims[axis]) {
                    return n8_refuse(r->error, N8_E_SHAPE, "a dimension that is not open differs");
                }
                continue;
            }
            uint32_t number;
            N8_TRY(open_dimension(r, row.dims[axis], &number));
            const struct n8_file_symbol symbol = symbol_at(r, number);
            const int32_t usual =
                largest ? symbol.hi - (symbol.hi - symbol.lo) % symbol.step : symbol.usual;
            const int32_t value = shapes == NULL ? usual : shapes[i][axis];
            if (!fits(&symbol, value)) {
                return n8_refuse(r->error, N8_E_SHAPE, "an open dimension is outside its bounds");
            }
            if (values[number] != 0 && values[number] != value) {
                return n8_refuse(r->error, N8_E_SHAPE,
                                 "dimensions that must be equal are different");
            }
            values[number] = value;
        }
    }
    r->error->name = NULL;
    r->error->axis = -1;
    for (uint32_t i = 0; i < r->shapes.table.symbol_count; i++) {
        if (values[i] == 0) {
            return n8_malformed(r, "an open dimension belongs to no input");
        }
    }
    return N8_OK;
}

enum n8_status n8_read_bounds(struct n8_reader *r, size_t index, size_t axis,
                              struct n8_dimension *out) {
    struct n8_file_tensor row, other;
    if (index >= r->header.input_count || input_at(r, (uint32_t)index, &row) != N8_OK ||
        axis >= row.rank) {
        return N8_E_ARGUMENT;
    }
    *out = (struct n8_dimension){
        .lo = row.dims[axis], .hi = row.dims[axis], .step = 1, .same = 8 * index + axis};
    uint32_t number, its;
    if (row.dims[axis] >= 0) {
        return N8_OK;
    }
    N8_TRY(open_dimension(r, row.dims[axis], &number));
    const struct n8_file_symbol symbol = symbol_at(r, number);
    out->lo = symbol.lo;
    out->hi = symbol.hi;
    out->step = symbol.step;
    for (size_t i = 0; i < out->same; i++) { // ends at this dimension
        if (input_at(r, (uint32_t)(i / 8), &other) == N8_OK && i % 8 < other.rank &&
            other.dims[i % 8] < 0 && open_dimension(r, other.dims[i % 8], &its) == N8_OK &&
            its == number) {
            out->same = i;
        }
    }
    return N8_OK;
}

// Sizes --------------------------------------------------------------------------------

// The result for whole numbers within int32; false: there is none.
static bool combine(uint32_t kind, int64_t a, int64_t b, int64_t *out) {
    switch (kind) {
    case N8_SIZE_ADD:
        *out = a + b;
        return true;
    case N8_SIZE_SUBTRACT:
        *out = a - b;
        return true;
    case N8_SIZE_MULTIPLY:
        *out = a * b;
        return true;
    case N8_SIZE_DIVIDE:
        if (b < 1) {
            return false;
        }
        *out = a / b - (a % b < 0);
        return true;
    case N8_SIZE_MAXIMUM:
        *out = a > b ? a : b;
        return true;
    case N8_SIZE_MINIMUM:
        *out = a < b ? a : b;
        return true;
    default:
        return false;
    }
}

static bool evaluate(const struct n8_reader *r, const struct n8_file_size *size, uint32_t index,
                     int64_t *out) {
    const int32_t *known = r->shapes.sizes;
    const bool number = size->kind == N8_SIZE_NUMBER;
    if (number || size->kind == N8_SIZE_SYMBOL) {
        const bool there = size->a >= 0 && (uint32_t)size->a < r->shapes.table.symbol_count;
        if (size->b != 0 || (!number && !there)) {
            return false;
        }
        *out = number ? size->a : r->shapes.symbols[size->a];
        return true;
    }
    if (size->a < 0 || size->b < 0 || (uint32_t)size->a >= index || (uint32_t)size->b >= index) {
        return false;
    }
    return combine(size->kind, known[size->a], known[size->b], out);
}

static int32_t word_at(const struct n8_reader *r, uint32_t word) {
    int32_t found;
    memcpy(&found, r->bytes + r->shapes.table.words + word * sizeof found, sizeof found);
    return found;
}

// A number among words.
static enum n8_status number_at(const struct n8_reader *r, uint32_t word, int32_t *out) {
    *out = word_at(r, word);
    return n8_resolve(r, out, 1);
}

// The bits of a float.
static float real_at(const struct n8_reader *r, uint32_t word) {
    const int32_t bits = word_at(r, word);
    float real;
    memcpy(&real, &bits, sizeof real);
    return real;
}

// How many entries a segment makes for each of its count.
static int32_t taps_of(const struct n8_reader *r, uint32_t word) {
    const int32_t taps = word_at(r, word + 4) / N8_TAPS_COUNT & (2 * N8_MOST_TAPS - 1);
    return word_at(r, word) == N8_SEGMENT_TAPS ? taps : 1;
}

// How many entries a form makes, of which `word` is the first word.
static enum n8_status entries_of(const struct n8_reader *r, const struct n8_file_form *form,
                                 uint32_t word, uint64_t *out) {
    *out = form->kind == N8_FORM_NUMBERS ? form->word_count : 0;
    for (uint32_t i = 0; form->kind != N8_FORM_NUMBERS && i < form->word_count;
         i += N8_SEGMENT_WORDS) {
        const int32_t kind = word_at(r, word + i);
        int32_t count;
        N8_TRY(number_at(r, word + i + 1, &count));
        if (kind < N8_SEGMENT_RUN || kind > N8_SEGMENT_TAPS || count < 0) {
            return n8_malformed(r, "a segment is of no known kind, or has less than no entries");
        }
        *out += (uint64_t)count * (uint64_t)taps_of(r, word + i);
    }
    return N8_OK;
}

enum n8_status n8_evaluate_sizes(struct n8_reader *r) {
    struct n8_shapes *s = &r->shapes;
    for (uint32_t i = 0; i < s->table.size_count; i++) {
        const struct n8_file_size size = size_at(r, i);
        int64_t value;
        if (!evaluate(r, &size, i, &value)) {
            return n8_malformed(r, "a size is of no known kind, or of none that stand before it");
        }
        if (value < -INT32_MAX || value > INT32_MAX) {
            return n8_malformed(r, "a size that follows from the shapes is beyond 2^31");
        }
        s->sizes[i] = (int32_t)value;
    }
    uint32_t word = 0;
    uint64_t entries = 0;
    for (uint32_t i = 0; i < s->table.form_count; i++) {
        struct n8_file_form form;
        memcpy(&form, r->bytes + s->table.forms + i * sizeof form, sizeof form);
        uint64_t count;
        N8_TRY(entries_of(r, &form, word, &count));
        entries += count; // at most 2^20 segments of 2^32
        word += form.word_count;
    }
    if (entries > MOST_BYTES / sizeof(int32_t)) {
        return n8_refuse(r->error, N8_E_LIMIT, "arrays that follow from the shapes are too large");
    }
    s->arrays_size = (size_t)entries * sizeof(int32_t);
    s->arrays_used = 0;
    s->next_form = s->next_word = 0;
    return N8_OK;
}

enum n8_status n8_resolve(const struct n8_reader *r, int32_t *numbers, size_t count) {
    for (size_t i = 0; r->shapes.table.size_count != 0 && i < count; i++) {
        const int64_t index = -1 - (int64_t)numbers[i];
        if (index >= r->shapes.table.size_count) {
            return n8_malformed(r, "it has a size that the file does not have");
        }
        numbers[i] = index < 0 ? numbers[i] : r->shapes.sizes[index];
    }
    return N8_OK;
}

// Arrays -------------------------------------------------------------------------------

static enum n8_status make_run(const struct n8_reader *r, uint32_t word, int32_t count, bool floats,
                               uint8_t *out) {
    int32_t first = 0, step = 0, repeat, period;
    N8_TRY(number_at(r, word + 4, &repeat));
    N8_TRY(number_at(r, word + 5, &period));
    if (!floats) {
        N8_TRY(number_at(r, word + 2, &first));
        N8_TRY(number_at(r, word + 3, &step));
    }
    const float real_first = real_at(r, word + 2), real_step = real_at(r, word + 3);
    if (repeat < 1 || period < 0) {
        return n8_malformed(r, "a run repeats its entries less than once");
    }
    // For entry k, place is k / repeat, modulo period unless that is 0.
    for (int32_t k = 0, again = 0, place = 0; k < count; k++, out += sizeof(int32_t)) {
        const int64_t entry = first + (int64_t)place * step;
        const int32_t number = (int32_t)entry;
        const float value = real_first + (float)place * real_step;
        if (entry != number) {
            return n8_malformed(r, "an entry of a run is beyond int32");
        }
        memcpy(out, floats ? (const void *)&value : &number, sizeof number);
        if (++again == repeat) {
            again = 0;
            place = place + 1 == period ? 0 : place + 1;
        }
    }
    return N8_OK;
}

// An axis that is resized, (17).
struct axis {
    int32_t in, out;
    float scale;
    int32_t coordinates, manner; // enum n8_coordinates, n8_taps
    float a;
};

static enum n8_status axis_at(const struct n8_reader *r, uint32_t word, int32_t count,
                              struct axis *axis) {
    N8_TRY(number_at(r, word + 2, &axis->in));
    axis->scale = real_at(r, word + 3);
    axis->manner = word_at(r, word + 4);
    axis->coordinates = axis->manner & (N8_TAPS_CUBIC - 1);
    axis->a = real_at(r, word + 5);
    axis->out = count;
    if (axis->scale == 0.0f) {
        axis->scale = (float)count / (float)axis->in;
    }
    const bool known = axis->coordinates >= N8_COORDINATES_HALF_PIXEL &&
                       axis->coordinates <= N8_COORDINATES_ASYMMETRIC;
    if (axis->in < 1 || !known || !(axis->scale > 0x1p-20f && axis->scale < 0x1p20f)) {
        return n8_malformed(r, "it resizes an axis in no known manner");
    }
    return N8_OK;
}

static float coordinate(const struct axis *axis, int32_t k) {
    const float x = (float)k;
    const bool one = axis->out == 1;
    if (axis->scale == 1.0f) {
        return x;
    }
    switch (axis->coordinates) {
    case N8_COORDINATES_PYTORCH_HALF_PIXEL:
        return one ? 0.0f : (x + 0.5f) / axis->scale - 0.5f;
    case N8_COORDINATES_ALIGN_CORNERS:
        return one ? 0.0f : x * ((float)axis->in - 1.0f) / ((float)axis->out - 1.0f);
    case N8_COORDINATES_ASYMMETRIC:
        return x / axis->scale;
    default:
        return (x + 0.5f) / axis->scale - 0.5f;
    }
}

static float within(float at, int32_t in) {
    const float last = (float)(in - 1);
    return at < 0.0f ? 0.0f : at > last ? last : at;
}

static int32_t nearest(const struct axis *axis, int32_t k, int32_t rounding) {
    const float at = coordinate(axis, k), down = floorf(at), far = at - down;
    bool up;
    switch (rounding) {
    case N8_NEAREST_PREFER_CEIL:
        up = far >= 0.5f;
        break;
    case N8_NEAREST_FLOOR:
        up = false;
        break;
    case N8_NEAREST_CEIL:
        up = far > 0.0f;
        break;
    default:
        up = far > 0.5f;
        break;
    }
    return axis->scale == 1.0f ? k : (int32_t)within(up ? down + 1.0f : down, axis->in);
}

static enum n8_status make_nearest(const struct n8_reader *r, uint32_t word, int32_t count,
                                   uint8_t *out) {
    struct axis axis = {0};
    const int32_t rounding = word_at(r, word + 5);
    N8_TRY(axis_at(r, word, count, &axis));
    if (!n8_in_range(rounding, N8_NEAREST_PREFER_FLOOR, N8_NEAREST_CEIL) ||
        axis.manner != axis.coordinates) {
        return n8_malformed(r, "it resizes an axis in no known manner");
    }
    for (int32_t k = 0; k < count; k++, out += sizeof(int32_t)) {
        const int32_t at = nearest(&axis, k, rounding);
        memcpy(out, &at, sizeof at);
    }
    return N8_OK;
}

// The weight of what is so far away, (17).
static double weight_of(const struct axis *axis, double far) {
    const double a = (double)axis->a;
    if ((axis->manner & N8_TAPS_CUBIC) == 0) {
        return far < 1.0 ? 1.0 - far : 0.0;
    }
    return far <= 1.0  ? ((a + 2.0) * far - (a + 3.0)) * far * far + 1.0
           : far < 2.0 ? ((a * far - 5.0 * a) * far + 8.0 * a) * far - 4.0 * a
                       : 0.0;
}

// The taps of entry k: weights of neighbours, of which the first is returned. What would lie beyond
// an end adds its weight to that end. False: they are more than `most`.
static bool weigh(const struct axis *axis, int32_t k, int32_t most, double *weights,
                  int32_t *first) {
    const float at = coordinate(axis, k);
    const bool cubic = (axis->manner & N8_TAPS_CUBIC) != 0;
    const bool shrinks = (axis->manner & N8_TAPS_ANTIALIAS) != 0 && axis->scale < 1.0f;
    const bool excludes = (axis->manner & N8_TAPS_EXCLUDE_OUTSIDE) != 0;
    memset(weights, 0, N8_MOST_TAPS * sizeof *weights);
    if (axis->scale == 1.0f || (!cubic && !shrinks)) {
        const float inside = within(at, axis->in);
        *first = (int32_t)inside;
        const float share = *first == axis->in - 1 ? 0.0f : inside - (float)*first;
        weights[0] = (double)(1.0f - share);
        weights[1] = (double)share;
        return true;
    }
    const double reach = cubic ? 2.0 : 1.0, step = shrinks ? (double)axis->scale : 1.0;
    const double places = ceil(2.0 * reach / step), last = (double)(axis->in - 1);
    const double begin = floor((double)at - reach / step) + 1.0;
    if (places > (double)N8_MOST_TAPS) {
        return false;
    }
    double shares[N8_MOST_TAPS], sum = 0.0;
    for (int32_t i = 0; i < (int32_t)places; i++) {
        const double place = begin + (double)i;
        const bool outside = excludes && (place < 0.0 || place > last);
        shares[i] = outside ? 0.0 : weight_of(axis, fabs(place - (double)at) * step);
        sum += shares[i];
    }
    sum = excludes || shrinks ? sum : 1.0;
    *first = (int32_t)fmin(fmax(begin, 0.0), last);
    for (int32_t i = 0; i < (int32_t)places; i++) {
        const int32_t place = (int32_t)fmin(fmax(begin + (double)i, 0.0), last);
        weights[place - *first] += shares[i] / sum;
    }
    for (int32_t i = most; i < (int32_t)places; i++) {
        if ((float)weights[i] != 0.0f) {
            return false;
        }
    }
    return true;
}

// The values that one of the output is made of, or their weights. One that weighs nothing is the
// first value, but for the second of them.
static enum n8_status make_taps(const struct n8_reader *r, uint32_t word, int32_t count,
                                bool floats, uint8_t *out) {
    struct axis axis = {0};
    N8_TRY(axis_at(r, word, count, &axis));
    double weights[N8_MOST_TAPS];
    const int32_t taps = taps_of(r, word);
    bool fits = n8_in_range(taps, 2, N8_MOST_TAPS);
    for (int32_t k = 0; k < count; k++) {
        int32_t first = 0;
        fits = fits && weigh(&axis, k, taps, weights, &first);
        if (!fits) {
            return n8_malformed(r, "it resizes an axis with fewer or more taps than it has");
        }
        for (int32_t t = 0; t < taps; t++, out += sizeof(int32_t)) {
            const float weight = (float)weights[t];
            const int32_t place = first + t < axis.in ? first + t : axis.in - 1;
            const int32_t index = t >= 2 && weight == 0.0f ? 0 : place;
            memcpy(out, floats ? (const void *)&weight : &index, sizeof index);
        }
    }
    return N8_OK;
}

static enum n8_status make_segments(const struct n8_reader *r, const struct n8_file_form *form,
                                    uint8_t *out) {
    const uint32_t first = r->shapes.next_word;
    const bool floats = form->kind == N8_FORM_FLOATS;
    for (uint32_t word = first; word < first + form->word_count; word += N8_SEGMENT_WORDS) {
        const int32_t kind = word_at(r, word);
        int32_t count;
        N8_TRY(number_at(r, word + 1, &count));
        if (kind == N8_SEGMENT_RUN) {
            N8_TRY(make_run(r, word, count, floats, out));
        } else if (kind == N8_SEGMENT_TAPS) {
            N8_TRY(make_taps(r, word, count, floats, out));
        } else if (floats) {
            return n8_malformed(r, "a form makes indices of an array of floats");
        } else {
            N8_TRY(make_nearest(r, word, count, out));
        }
        out += (size_t)count * (size_t)taps_of(r, word) * sizeof(int32_t);
    }
    return N8_OK;
}

enum n8_status n8_make_array(struct n8_reader *r, uint64_t number, size_t size, const void **out) {
    struct n8_shapes *s = &r->shapes;
    struct n8_file_form form;
    uint64_t entries;
    if (number != s->next_form || number >= s->table.form_count) {
        return n8_malformed(r, "its forms are not where they must be");
    }
    memcpy(&form, r->bytes + s->table.forms + number * sizeof form, sizeof form);
    N8_TRY(entries_of(r, &form, s->next_word, &entries));
    if (entries * sizeof(int32_t) != size) {
        return n8_malformed(r, "a form makes an array of another length");
    }
    uint8_t *to = s->arrays + s->arrays_used;
    *out = to;
    if (form.kind != N8_FORM_NUMBERS) {
        N8_TRY(make_segments(r, &form, to));
    }
    for (uint32_t i = 0; form.kind == N8_FORM_NUMBERS && i < form.word_count; i++) {
        int32_t value;
        N8_TRY(number_at(r, s->next_word + i, &value));
        memcpy(to + i * sizeof value, &value, sizeof value);
    }
    s->arrays_used += (size_t)entries * sizeof(int32_t);
    s->next_word += form.word_count;
    s->next_form++;
    return N8_OK;
}
