/* SPDX-License-Identifier: Apache-2.0 */
/* ingot devices: see ingot-devices(1). */
#include "base/cli.h"
#include "base/cmds.h"
#include "loader/loader.h"

static json_t *to_json(const struct ig_devices *d)
{
    json_t *list = json_array();
    for (int i = 0; i < d->n; i++) {
        const struct ig_device *k = &d->list[i];
        json_array_append_new(list,
                              json_pack("{s:i,s:s,s:s,s:s,s:[i,i],s:i,s:I}", "index", k->index,
                                        "name", k->name, "uuid", k->uuid, "pci", k->pci,
                                        "compute_capability", k->major, k->minor, "multiprocessors",
                                        k->multiprocessors, "memory", (json_int_t)k->memory));
    }
    return json_pack("{s:b,s:i,s:i,s:o}", "cuda", d->built, "runtime", d->runtime, "driver",
                     d->driver, "devices", list);
}

static void print_table(const struct ig_devices *d)
{
    static const char *const heads[] = {"DEVICE", "NAME", "MEMORY", "CC",
                                        "SMS",    "PCI",  "UUID",   NULL};
    struct ig_table *t = ig_table_new(heads, "llrlrll");
    for (int i = 0; i < d->n; i++) {
        const struct ig_device *k = &d->list[i];
        const struct ig_text memory = ig_human(k->memory);
        char device[24], cc[24], sms[24];
        snprintf(device, sizeof device, "cuda:%d", k->index);
        snprintf(cc, sizeof cc, "%d.%d", k->major, k->minor);
        snprintf(sms, sizeof sms, "%d", k->multiprocessors);
        const char *const cells[] = {device, k->name, memory.s, cc, sms, k->pci, k->uuid};
        ig_table_row(t, cells);
    }
    ig_table_print(t);
}

int ig_cmd_devices(int argc, char **argv)
{
    static const struct ig_opt opts[] = {IG_OPT_END};
    struct ig_cli cli = {.usage = ""};
    const int stop = ig_cli_parse(&cli, argc, argv, opts, 0, 0);
    if (stop >= 0) return stop;
    ingot_error e = {0};
    struct ig_devices d;
    if (ig_devices_list(&d, &e) != INGOT_OK) return ig_cli_fail(&cli, &e);
    if (cli.json)
        ig_cli_json(to_json(&d));
    else if (d.n > 0)
        print_table(&d);
    else
        printf("no CUDA device: %s\n", !d.built    ? "built without CUDA"
                                       : !d.driver ? "no driver"
                                                   : "the driver lists none");
    ig_devices_free(&d);
    return ig_cli_finish(&cli, 0);
}
