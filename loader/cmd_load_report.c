/* SPDX-License-Identifier: Apache-2.0 */
/* What ingot load reports: the JSON of it, and the same for people. */
#include "base/cli.h"
#include "loader/cmd_load.h"

#include <string.h>

const char *const ig_check_words[3] = {"full", "fast", "off"};
const char *const ig_engine_words[INGOT_ENGINES] = {"auto", "ring", "map", "direct"};

static json_t *count(uint64_t n)
{
    return json_integer((json_int_t)n);
}

json_t *ig_load_report(const ingot_loader *l, const ingot_pack *p, const char *model,
                       const char *level)
{
    uint64_t tensors = 0;
    json_t *r = json_object();
    for (uint32_t i = 0; i < p->pack.nrows; i++) {
        struct ig_row row;
        ig_pack_row(&p->pack, i, &row);
        tensors += !(row.flags & (IG_ROW_VIEW | IG_ROW_SHADOW));
    }
    json_object_set_new(r, "model", ig_text_json(model));
    json_object_set_new(r, "path", ig_text_json(p->pack.path));
    json_object_set_new(
        r, "digest", p->has_digest ? ig_digest_json("fsverity-sha256:", p->digest) : json_null());
    json_object_set_new(r, "device", json_string(ingot_loader_device(l)));
    json_object_set_new(r, "device_name", json_string(l->dev->info.model));
    json_object_set_new(r, "verify", json_string(level));
    json_object_set_new(r, "tensors_in_model", count(tensors));
    json_object_set_new(r, "loads", json_array());
    return r;
}

json_t *ig_load_json(const struct ingot_load_stats *s, ingot_status status)
{
    json_t *j = json_object(), *seconds = json_object(), *engines = json_object();
    json_object_set_new(j, "ok", json_boolean(status == INGOT_OK));
    json_object_set_new(seconds, "plan", json_real(s->plan));
    json_object_set_new(seconds, "device_ready", json_real(s->device));
    json_object_set_new(seconds, "first_landed", json_real(s->first));
    json_object_set_new(seconds, "last_landed", json_real(s->landed));
    json_object_set_new(seconds, "total", json_real(s->total));
    json_object_set_new(seconds, "cpu", json_real(s->cpu));
    json_object_set_new(j, "seconds", seconds);
    for (int i = INGOT_ENGINE_RING; i < INGOT_ENGINES; i++)
        if (s->by_engine[i])
            json_object_set_new(engines, ig_engine_words[i], count(s->by_engine[i]));
    json_object_set_new(j, "read_by", engines);
    json_object_set_new(j, "read", count(s->read));
    json_object_set_new(j, "uploaded", count(s->uploaded));
    json_object_set_new(j, "placed", count(s->placed));
    json_object_set_new(j, "proven", count(s->proven));
    json_object_set_new(j, "tensors", count(s->tensors));
    json_object_set_new(j, "tensors_proven", count(s->tensors_proven));
    json_object_set_new(j, "pinned_asked", count(s->pinned_asked));
    json_object_set_new(j, "pinned", count(s->pinned));
    json_object_set_new(j, "arena", count(s->arena));
    json_object_set_new(j, "transient", count(s->transient));
    json_object_set_new(j, "threads", count(s->threads));
    json_object_set_new(j, "early", json_boolean(s->early));
    return j;
}

/* ---- for people ---- */

static uint64_t number(const json_t *o, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(o, key));
}

static double seconds(const json_t *o, const char *key)
{
    return json_real_value(json_object_get(json_object_get(o, "seconds"), key));
}

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static double rate(const json_t *load)
{
    const double s = seconds(load, "total");
    return s > 0 ? (double)number(load, "placed") / s : 0;
}

static const json_t *best(const json_t *loads)
{
    const json_t *found = NULL;
    size_t i;
    json_t *l;
    json_array_foreach(loads, i, l) if (!found || rate(l) > rate(found)) found = l;
    return found;
}

static void print_checked(const json_t *r, const json_t *l)
{
    const char *level = text(r, "verify");
    const unsigned long long some = (unsigned long long)number(l, "tensors_proven");
    const unsigned long long all = (unsigned long long)number(r, "tensors_in_model");
    if (strcmp(level, "off") == 0)
        printf("  nothing checked, 0 of %llu tensors\n", all);
    else if (strcmp(level, "fast") == 0)
        printf("  %s checked by XXH3 for corruption, 0 bytes proven, 0 of %llu tensors\n",
               ig_human(number(l, "proven")).s, all);
    else
        printf("  %s proven by SHA-256 where they lie, %llu of %llu tensors\n",
               ig_human(number(l, "proven")).s, some, all);
}

static void print_load(const json_t *r, const json_t *l, size_t n)
{
    const double ceiling = json_real_value(json_object_get(r, "ceiling"));
    const char *key;
    json_t *v;
    printf("  %s in %.4f s, %.2f GB/s", ig_human(number(l, "placed")).s, seconds(l, "total"),
           rate(l) * 1e-9);
    if (ceiling > 0)
        printf(" (%.1f %% of %.2f GB/s that copies alone reach here)", 100 * rate(l) / ceiling,
               ceiling * 1e-9);
    if (n > 1) printf(", best of %zu", n);
    printf(
        "\n  planned %.4f s, device ready %.4f s, first landed %.4f s, last %.4f s, CPU %.3f s\n",
        seconds(l, "plan"), seconds(l, "device_ready"), seconds(l, "first_landed"),
        seconds(l, "last_landed"), seconds(l, "cpu"));
    printf("  read");
    json_object_foreach(json_object_get(l, "read_by"), key, v)
        printf(" %s by %s,", ig_human((uint64_t)json_integer_value(v)).s, key);
    printf(" %llu threads; pinned %s of %s asked; device memory %s and %s meanwhile\n",
           (unsigned long long)number(l, "threads"), ig_human(number(l, "pinned")).s,
           ig_human(number(l, "pinned_asked")).s, ig_human(number(l, "arena")).s,
           ig_human(number(l, "transient")).s);
}

void ig_load_print(const struct ig_cli *c, const json_t *r)
{
    const json_t *loads = json_object_get(r, "loads"), *l = best(loads);
    const char *model = text(r, "model"), *level = text(r, "verify");
    (void)c;
    if (!l) return;
    const bool ok =
        json_is_true(json_object_get(json_array_get(loads, json_array_size(loads) - 1), "ok"));
    const bool whole = number(l, "tensors") >= number(r, "tensors_in_model");
    printf("%s: %s%s on %s%s%s  %s\n", ig_esc(model, strlen(model)).s,
           !ok                          ? "FAILED"
           : strcmp(level, "full") == 0 ? "loaded and verified"
           : strcmp(level, "fast") == 0 ? "loaded, intact"
                                        : "loaded, unchecked",
           whole ? "" : ", in part,", text(r, "device"), *text(r, "device_name") ? " " : "",
           text(r, "device_name"), text(r, "digest"));
    print_checked(r, l);
    print_load(r, l, json_array_size(loads));
    const json_t *policy = json_object_get(r, "policy");
    if (policy)
        printf("  accepted by %s: %s %s of %s\n", text(policy, "rule"), text(policy, "kind"),
               ig_esc(text(policy, "bundle"), strlen(text(policy, "bundle"))).s,
               text(policy, "by"));
    if (*text(r, "receipt")) printf("  receipt %s\n", text(r, "receipt"));
}
