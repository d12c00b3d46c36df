// SPDX-License-Identifier: Apache-2.0
package dev.neon8;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.util.Collections;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Logger;

/**
 * A model or session of the library, which is freed once and only while nothing uses it: by
 * close(), or, with a warning, after its owner was forgotten.
 */
final class Handle extends PhantomReference<Object> {
    private static final int CLOSED = -1;
    private static final ReferenceQueue<Object> FORGOTTEN = new ReferenceQueue<>();

    /** All that are open: a reference that is itself unreachable never reaches its queue. */
    private static final Set<Handle> OPEN = Collections.newSetFromMap(new ConcurrentHashMap<>());

    final long address;
    private final Handle model; // that a session, or a model at other shapes, was made of
    private final boolean session;
    /** Calls that are running, sessions and other shapes; or CLOSED. */
    private final AtomicInteger users = new AtomicInteger();

    private volatile boolean forgotten;

    /** The `model` of a session or another shape is in use already, and is until this is freed. */
    Handle(Object owner, long address, Handle model, boolean session) {
        super(owner, FORGOTTEN);
        this.address = address;
        this.model = model;
        this.session = session;
        OPEN.add(this);
    }

    /** Begins a use; leave() ends it. A session has one at a time. */
    void enter() {
        int before;
        do {
            before = users.get();
            if (before == CLOSED) {
                throw new IllegalStateException(this + " has been closed");
            }
            if (session && before > 0) {
                throw new IllegalStateException(
                        "the session is in use by another thread; each needs its own");
            }
        } while (!users.compareAndSet(before, before + 1));
    }

    void leave() {
        users.decrementAndGet();
        freeForgotten();
    }

    void close() {
        if (users.compareAndSet(0, CLOSED)) {
            free();
        } else if (users.get() != CLOSED) {
            String text = session ? " runs in another thread" : " is in use; close what it made";
            throw new IllegalStateException(this + text);
        }
    }

    boolean isClosed() {
        return users.get() == CLOSED;
    }

    /** Frees what was forgotten; called where something new is about to be made. */
    static void reap() {
        for (Handle each; (each = (Handle) FORGOTTEN.poll()) != null; ) {
            if (!each.isClosed()) {
                Logger.getLogger("dev.neon8").warning(each + " was never closed; it is now");
                each.forgotten = true;
                each.freeForgotten();
            }
        }
    }

    private void freeForgotten() {
        if (forgotten && users.compareAndSet(0, CLOSED)) {
            free();
        }
    }

    private void free() {
        OPEN.remove(this);
        if (session) {
            Native.destroySession(address);
        } else {
            Native.closeModel(address);
        }
        if (model != null) {
            model.leave();
        }
    }

    @Override
    public String toString() {
        return session ? "the session" : "the model";
    }
}
