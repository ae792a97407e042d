/* SPDX-License-Identifier: Apache-2.0 */
/* A receipt in words: the answers first, then what it says. */
#include "verify/report.h"

#include <string.h>

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static struct ig_esc shown(const json_t *o, const char *key)
{
    return ig_esc(text(o, key), strlen(text(o, key)));
}

static const char *presence(const json_t *o)
{
    const json_t *v = json_object_get(o, "present");
    return !v ? "not pinned: not looked for" : json_is_true(v) ? "in the store" : "NOT THERE";
}

static void print_signer(const json_t *r)
{
    const json_t *signer = json_object_get(r, "signer");
    const json_t *cert = json_object_get(signer, "certificate");
    printf("  signature: %s", text(r, "signature"));
    if (strcmp(text(r, "signature"), "good") == 0)
        printf(", by %s", cert ? text(cert, "subject") : text(signer, "key"));
    putchar('\n');
}

static void print_program(const json_t *p)
{
    const json_t *parts[] = {json_object_get(p, "executable"), json_object_get(p, "library")};
    for (size_t i = 0; i < 2; i++)
        if (json_is_object(parts[i]))
            printf("  program %s  sha256:%s\n", shown(parts[i], "name").s,
                   shown(parts[i], "sha256").s);
}

static void print_verification(const json_t *v)
{
    if (!v) return;
    printf("  model %s at level %s: %lld of %lld bytes proven, %lld of %lld tensors\n",
           shown(v, "verdict").s, shown(v, "level").s,
           (long long)json_integer_value(json_object_get(v, "bytes_proven")),
           (long long)json_integer_value(json_object_get(v, "bytes_expected")),
           (long long)json_integer_value(json_object_get(v, "tensors_proven")),
           (long long)json_integer_value(json_object_get(v, "tensors")));
}

void ig_receipt_print(const json_t *r)
{
    const json_t *p = json_object_get(json_object_get(r, "statement"), "predicate");
    const json_t *model = json_object_get(r, "model"), *output = json_object_get(r, "output");
    const json_t *device = json_object_get(p, "device");
    size_t i;
    json_t *in;
    printf("%s: %s\n", shown(r, "receipt").s, text(r, "word"));
    print_signer(r);
    if (model)
        printf("  model %s  %s  %s\n", shown(model, "name").s, shown(model, "digest").s,
               presence(model));
    json_array_foreach(json_object_get(r, "inputs"), i, in) printf(
        "  input %s  sha256:%s  %s\n", shown(in, "name").s, shown(in, "sha256").s, presence(in));
    if (output) {
        const json_t *equal = json_object_get(output, "equal");
        printf("  output %s  sha256:%s  %s\n", shown(output, "name").s, shown(output, "sha256").s,
               !equal                ? "not compared"
               : json_is_true(equal) ? "equal"
                                     : "DIFFERENT");
    }
    if (p) {
        printf("  %s, %s to %s", shown(p, "command").s, shown(p, "started").s, shown(p, "ended").s);
        if (device)
            printf(" on %s%s%s", shown(device, "name").s, *text(device, "model") ? " " : "",
                   shown(device, "model").s);
        if (*text(p, "nonce")) printf(", nonce %s", shown(p, "nonce").s);
        putchar('\n');
    }
    print_verification(json_object_get(p, "verification"));
    print_program(json_object_get(p, "program"));
    ig_verify_print_findings(json_object_get(r, "bad"));
}
