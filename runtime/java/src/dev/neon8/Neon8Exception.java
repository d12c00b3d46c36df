// SPDX-License-Identifier: Apache-2.0
package dev.neon8;

/**
 * The library refuses a model, or cannot have the memory that it needs. What a program does wrong
 * is an IllegalArgumentException or an IllegalStateException instead.
 */
public final class Neon8Exception extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** enum n8_status of neon8.h, in its order. */
    public enum Status {
        /** A status that these classes do not know: the library is newer. */
        UNKNOWN,
        ARGUMENT,
        MEMORY,
        FORMAT,
        VERSION,
        CHECKSUM,
        OVERFLOW,
        UNSUPPORTED,
        LIMIT,
        ADDRESS,
        SHAPE
    }

    private final Status status;
    private final String name;

    Neon8Exception(Status status, String reason, String name, boolean layer) {
        super(name == null ? reason : (layer ? "layer '" : "tensor '") + name + "': " + reason);
        this.status = status;
        this.name = name;
    }

    public Status getStatus() {
        return status;
    }

    /** The layer or tensor at fault, or null. It comes from the file: show it, trust it not. */
    public String getName() {
        return name;
    }
}
