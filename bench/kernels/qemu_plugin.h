// SPDX-License-Identifier: Apache-2.0
//
// What count.c uses of qemu's plugin interface, which qemu's documentation describes as "TCG
// Plugins". Distributions ship the interface in qemu-user, but not its header. These functions
// are the same in every version so far.
#ifndef QEMU_PLUGIN_H
#define QEMU_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#define QEMU_PLUGIN_EXPORT __attribute__((visibility("default")))

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_info; // of the machine; not looked at
struct qemu_plugin_tb;   // a translated block

typedef void (*qemu_plugin_udata_cb_t)(qemu_plugin_id_t id, void *context);
typedef void (*qemu_plugin_vcpu_udata_cb_t)(unsigned vcpu, void *context);
typedef void (*qemu_plugin_vcpu_tb_trans_cb_t)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);

uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           qemu_plugin_vcpu_tb_trans_cb_t translated);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
                                          qemu_plugin_vcpu_udata_cb_t executed,
                                          enum qemu_plugin_cb_flags flags, void *context);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_plugin_udata_cb_t exited,
                                    void *context);

#endif // QEMU_PLUGIN_H
