// SPDX-License-Identifier: Apache-2.0
//
// The outside of a model file: header, checksum, and where its parts lie. The bytes are
// copied field by field, so that no read depends on the alignment of the caller's buffer.
#include "model.h"

#include "checksum.h"
#include "size.h"

#include <string.h>

static const uint8_t MAGIC[8] = {0x89, 'N', '8', 0x0d, 0x0a, 0x1a, 0x0a, 0x00};

// True if `count` entries of `entry` bytes at `offset` lie behind the header, aligned.
static bool part_ok(const struct n8_file_header *h, uint64_t offset, uint64_t count, uint64_t entry,
                    uint64_t align) {
    if (offset % align != 0 || offset < sizeof *h || offset > h->file_size) {
        return false;
    }
    return count <= (h->file_size - offset) / entry;
}

enum n8_status n8_read_header(const void *bytes, size_t size, struct n8_file *out) {
    struct n8_file_header *h = &out->header;
    out->bytes = bytes;
    if (size < sizeof MAGIC || memcmp(bytes, MAGIC, sizeof MAGIC) != 0 || size < sizeof *h) {
        return N8_E_FORMAT;
    }
    memcpy(h, bytes, sizeof *h);
    if (h->version != N8_FORMAT_VERSION) {
        return N8_E_VERSION;
    }
    if (h->file_size != size) {
        return N8_E_FORMAT;
    }
    const size_t covered = offsetof(struct n8_file_header, checksum) + sizeof h->checksum;
    if (n8_crc32(out->bytes + covered, size - covered) != h->checksum) {
        return N8_E_CHECKSUM;
    }
    const bool counts_ok =
        h->tensor_count >= 1 && h->tensor_count <= N8_FORMAT_MAX_COUNT && h->op_count >= 1 &&
        h->op_count <= N8_FORMAT_MAX_COUNT && h->link_count <= N8_FORMAT_MAX_COUNT &&
        h->input_count >= 1 && h->output_count >= 1 && h->input_count <= h->link_count &&
        h->output_count <= h->link_count - h->input_count && h->strings_size >= 1;
    const bool parts_ok =
        part_ok(h, h->tensors, h->tensor_count, sizeof(struct n8_file_tensor), 8) &&
        part_ok(h, h->ops, h->op_count, sizeof(struct n8_file_op), 8) &&
        part_ok(h, h->links, h->link_count, sizeof(uint32_t), 8) &&
        part_ok(h, h->strings, h->strings_size, 1, 8) &&
        part_ok(h, h->data, h->data_size, 1, N8_FORMAT_ALIGN_DATA);
    if (!counts_ok || !parts_ok || out->bytes[h->strings + h->strings_size - 1] != 0) {
        return N8_E_FORMAT; // the last condition ends every name inside the section
    }
    return N8_OK;
}

void n8_read_tensor(const struct n8_file *file, size_t index, struct n8_file_tensor *out) {
    memcpy(out, file->bytes + file->header.tensors + index * sizeof *out, sizeof *out);
}

void n8_read_op(const struct n8_file *file, size_t index, struct n8_file_op *out) {
    memcpy(out, file->bytes + file->header.ops + index * sizeof *out, sizeof *out);
}

const void *n8_read_array(struct n8_file *file, uint64_t offset, size_t count, size_t entry) {
    const struct n8_file_header *h = &file->header;
    const size_t size = n8_mul(count, entry);
    if (offset % N8_FORMAT_ALIGN_DATA != 0 || offset < h->data) {
        return NULL;
    }
    const uint64_t inside = offset - h->data;
    if (inside > h->data_size || size > h->data_size - inside ||
        size > h->data_size - file->taken) {
        return NULL;
    }
    file->taken += size;
    return file->bytes + offset;
}

const char *n8_read_name(const struct n8_file *file, uint32_t offset) {
    if (offset >= file->header.strings_size) {
        return NULL;
    }
    const char *name = (const char *)file->bytes + file->header.strings + offset;
    return strlen(name) <= N8_FORMAT_MAX_NAME ? name : NULL;
}
