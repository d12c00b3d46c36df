// SPDX-License-Identifier: Apache-2.0
//
// The native methods of dev.neon8.Native. They trust their caller, the classes of that package,
// which give handles of living objects, ranges within the buffers, and the object that owns a
// handle: as an argument it stays reachable while the call lasts. What comes from a file, names
// above all, reaches Java as bytes: JNI's strings take modified UTF-8 only, and trust it.
#include "include/neon8.h"

#include <jni.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static jbyteArray bytes_of(JNIEnv *env, const char *text) {
    const jsize size = (jsize)strlen(text);
    jbyteArray bytes = (*env)->NewByteArray(env, size);
    if (bytes != NULL) {
        (*env)->SetByteArrayRegion(env, bytes, 0, size, (const jbyte *)text);
    }
    return bytes;
}

// Raises Neon8Exception.
static void fail(JNIEnv *env, jclass native, enum n8_status status,
                 const struct n8_model_error *error) {
    const bool told = error != NULL && error->reason != NULL;
    jbyteArray reason = bytes_of(env, told ? error->reason : n8_status_string(status));
    jbyteArray name = NULL;
    if (reason != NULL && told && error->name != NULL) {
        name = bytes_of(env, error->name);
    }
    if ((*env)->ExceptionCheck(env)) {
        return; // out of memory
    }
    jmethodID raise = (*env)->GetStaticMethodID(env, native, "fail", "(I[B[BZ)V");
    if (raise != NULL) {
        const jboolean layer = told && error->step >= 0;
        (*env)->CallStaticVoidMethod(env, native, raise, (jint)status, reason, name, layer);
    }
}

static jlong to_handle(void *pointer) {
    return (jlong)(intptr_t)pointer;
}

static void *to_pointer(jlong handle) {
    return (void *)(intptr_t)handle;
}

// NULL where the JVM cannot say.
static uint8_t *address_of(JNIEnv *env, jobject buffer, jint position) {
    uint8_t *start = (*env)->GetDirectBufferAddress(env, buffer);
    return start == NULL ? NULL : start + position;
}

JNIEXPORT jbyteArray JNICALL Java_dev_neon8_Native_version(JNIEnv *env, jclass native) {
    return bytes_of(env, n8_version());
}

JNIEXPORT jlong JNICALL Java_dev_neon8_Native_open(JNIEnv *env, jclass native, jobject buffer,
                                                   jint position, jint size, jlong max_bytes) {
    const struct n8_model_options options = {.max_bytes = (uint64_t)max_bytes};
    struct n8_model_error error = {0};
    struct n8_model *model = NULL;
    const uint8_t *bytes = address_of(env, buffer, position);
    const enum n8_status status = n8_model_open(bytes, (size_t)size, &options, &model, &error);
    if (status != N8_OK) {
        fail(env, native, status, &error);
    }
    return to_handle(model);
}

// `shapes`: eight dimensions for each input.
JNIEXPORT jlong JNICALL Java_dev_neon8_Native_reshape(JNIEnv *env, jclass native, jobject owner,
                                                      jlong handle, jintArray shapes) {
    struct n8_model_error error = {0};
    struct n8_model *model = NULL;
    enum n8_status status = N8_E_MEMORY;
    const jsize count = (*env)->GetArrayLength(env, shapes);
    int32_t (*rows)[8] = malloc((size_t)count * sizeof(int32_t) + 1); // which is never 0
    if (rows != NULL) {
        (*env)->GetIntArrayRegion(env, shapes, 0, count, (jint *)rows);
        status = n8_model_reshape(to_pointer(handle), rows, &model, &error);
        free(rows);
    }
    if (status != N8_OK) {
        fail(env, native, status, &error);
    }
    return to_handle(model);
}

JNIEXPORT void JNICALL Java_dev_neon8_Native_closeModel(JNIEnv *env, jclass native, jlong handle) {
    n8_model_close(to_pointer(handle));
}

// The name of input or output `index`, or null past the last. `numbers`: type, rank, zero point,
// lo, hi, the bits of the scale, dims[8]; then of inputs lo[8], hi[8], step[8] of the dimensions.
JNIEXPORT jbyteArray JNICALL Java_dev_neon8_Native_describe(JNIEnv *env, jclass native,
                                                            jobject owner, jlong handle, jint which,
                                                            jint index, jintArray numbers) {
    const struct n8_model *model = to_pointer(handle);
    struct n8_tensor_info info;
    if (n8_model_io(model, (enum n8_io)which, (size_t)index, &info) != N8_OK) {
        return NULL;
    }
    jint out[38] = {(jint)info.type, info.rank, info.zero_point, info.lo, info.hi};
    memcpy(&out[5], &info.scale, sizeof(jint));
    for (size_t axis = 0; axis < 8; axis++) {
        const int32_t size = info.dims[axis];
        struct n8_dimension bounds = {.lo = size, .hi = size, .step = 1};
        if (which == N8_INPUT && axis < (size_t)info.rank) {
            n8_model_bounds(model, (size_t)index, axis, &bounds);
        }
        out[6 + axis] = size;
        out[14 + axis] = bounds.lo;
        out[22 + axis] = bounds.hi;
        out[30 + axis] = bounds.step;
    }
    (*env)->SetIntArrayRegion(env, numbers, 0, 38, out);
    return bytes_of(env, info.name);
}

JNIEXPORT jlong JNICALL Java_dev_neon8_Native_createSession(JNIEnv *env, jclass native,
                                                            jobject owner, jlong handle,
                                                            jint threads) {
    const struct n8_session_options options = {.threads = threads};
    struct n8_session *session = NULL;
    const enum n8_status status = n8_session_create(to_pointer(handle), &options, &session);
    if (status != N8_OK) {
        fail(env, native, status, NULL);
    }
    return to_handle(session);
}

JNIEXPORT void JNICALL Java_dev_neon8_Native_destroySession(JNIEnv *env, jclass native,
                                                            jlong handle) {
    n8_session_destroy(to_pointer(handle));
}

struct range {
    uint8_t *begin, *end;
};

// True if an output shares bytes with an input or with another output.
static bool overlap(const struct range *ranges, size_t inputs, size_t count) {
    for (size_t out = inputs; out < count; out++) {
        for (size_t other = 0; other < out; other++) {
            if (ranges[out].begin < ranges[other].end && ranges[other].begin < ranges[out].end) {
                return true;
            }
        }
    }
    return false;
}

// Runs on `count` direct buffers, the inputs first, each of sizes[i] bytes from positions[i] on.
// Returns 0, 1 if some overlap, 2 if the JVM gives no address of one.
JNIEXPORT jint JNICALL Java_dev_neon8_Native_run(JNIEnv *env, jclass native, jobject owner,
                                                 jlong handle, jobjectArray buffers,
                                                 jintArray positions, jintArray sizes,
                                                 jint inputs) {
    const size_t count = (size_t)(*env)->GetArrayLength(env, buffers);
    // Ranges, pointers, positions and sizes, from the widest to the narrowest.
    struct range *ranges = malloc(count * (sizeof *ranges + sizeof(void *) + 2 * sizeof(jint)) + 1);
    if (ranges == NULL) {
        fail(env, native, N8_E_MEMORY, NULL);
        return 0;
    }
    void **pointers = (void **)(ranges + count);
    jint *starts = (jint *)(pointers + count), *lengths = starts + count;
    (*env)->GetIntArrayRegion(env, positions, 0, (jsize)count, starts);
    (*env)->GetIntArrayRegion(env, sizes, 0, (jsize)count, lengths);
    jint result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        jobject buffer = (*env)->GetObjectArrayElement(env, buffers, (jsize)i);
        pointers[i] = ranges[i].begin = address_of(env, buffer, starts[i]);
        (*env)->DeleteLocalRef(env, buffer); // a JVM may have room for few
        if (pointers[i] == NULL) {
            result = 2;
        } else {
            ranges[i].end = ranges[i].begin + lengths[i];
        }
    }
    if (result == 0 && overlap(ranges, (size_t)inputs, count)) {
        result = 1;
    }
    if (result == 0) {
        const enum n8_status status = n8_session_run(
            to_pointer(handle), (const void *const *)pointers, (void *const *)pointers + inputs);
        if (status != N8_OK) {
            fail(env, native, status, NULL);
        }
    }
    free(ranges);
    return result;
}
