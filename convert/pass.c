/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/pass.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_MOST ((size_t)4 << 20)
#define BUFFERS    ((size_t)64 << 20) /* all chunks together */
#define CAST_PIECE ((size_t)256 << 10)
#define LANES_MOST 8u
/* Each worker has its own MiB; past these no disk is faster than they are. */
#define THREADS_MOST 32u
#define WRITERS      4u

struct input {
    const char *path;
    const struct ig_src_file *file; /* NULL: the parent pack */
    uint64_t size;
    size_t phase;         /* where in a page the tensors' data starts; 0 for a pack */
    const uint32_t *rows; /* that copy, ascending by offset */
    uint32_t nrows;
    /* Touched by the ordered stages of one lane only. */
    int fd;
    struct ig_sha sha;
    struct ig_tree *tree;
    uint8_t *carry; /* the last bytes read */
    size_t carried;
};
struct worker_state {
    struct ig_hand hand;
    uint8_t *scratch;
    struct ig_cast_counts counts;
};
struct pass {
    struct ig_job *job;
    struct input *inputs;
    uint32_t ninputs;
    uint32_t *rows;   /* of all inputs */
    uint8_t *buffers; /* slots of IG_CARRY + chunk */
    size_t chunk;
    struct worker_state *workers;
    unsigned nworkers;
    uint32_t *lane_input; /* by lane: input being read, or IG_NONE */
    uint64_t *lane_offset;
    pthread_mutex_t lock; /* guards next_input, done and the progress call */
    uint32_t next_input;
    uint64_t done;
};

static uint8_t *chunk_of(const struct pass *p, const struct ig_item *item)
{
    return p->buffers + item->slot * (IG_CARRY + p->chunk) + IG_CARRY;
}

/* The first chunk is cut short so that all others start at a page of the tensors' data: what is
 * whole pages in the file then lies on pages in memory, and can be written without a copy. */
static size_t length_of(const struct pass *p, const struct ig_item *item)
{
    const struct input *in = &p->inputs[item->arg[0]];
    const uint64_t left = in->size - item->arg[1];
    const uint64_t most = item->arg[1] == 0 && in->phase ? in->phase : p->chunk;
    return left < most ? (size_t)left : (size_t)most;
}

static ingot_status next(void *ctx, struct ig_item *item, bool *more, ingot_error *e)
{
    struct pass *p = ctx;
    const struct ig_progress *g = &p->job->plan->job->progress;
    if (g->cancelled && g->cancelled(g->ctx)) return ig_fail(e, INGOT_ERR_CANCELLED, "cancelled");
    uint32_t *input = &p->lane_input[item->lane];
    uint64_t *offset = &p->lane_offset[item->lane];
    if (*input == IG_NONE || *offset >= p->inputs[*input].size) {
        pthread_mutex_lock(&p->lock);
        *input = p->next_input < p->ninputs ? p->next_input++ : IG_NONE;
        pthread_mutex_unlock(&p->lock);
        *offset = 0;
    }
    *more = *input != IG_NONE;
    if (!*more) return INGOT_OK;
    item->arg[0] = *input;
    item->arg[1] = *offset;
    *offset += length_of(p, item);
    return INGOT_OK;
}

static ingot_status open_input(struct input *in, ingot_error *e)
{
    in->carry = malloc(IG_CARRY);
    if (!in->carry) return ig_no_memory(e);
    if (!in->file) {
        in->tree = malloc(sizeof *in->tree);
        if (!in->tree) return ig_no_memory(e);
        ig_tree_init(in->tree);
        return INGOT_OK;
    }
    ig_sha_init(&in->sha);
    return_if_error(ig_src_file_open(in->file, &in->fd, e));
    (void)posix_fadvise(in->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return INGOT_OK;
}

static void keep_carry(struct input *in, const uint8_t *chunk, size_t n)
{
    const size_t have = in->carried + n;
    in->carried = have < IG_CARRY ? have : IG_CARRY;
    memcpy(in->carry, chunk + n - in->carried, in->carried);
}

static ingot_status stage_read(void *ctx, struct ig_item *item, unsigned worker, ingot_error *e)
{
    struct pass *p = ctx;
    struct input *in = &p->inputs[item->arg[0]];
    uint8_t *chunk = chunk_of(p, item);
    const size_t n = length_of(p, item);
    (void)worker;
    if (item->arg[1] == 0) return_if_error(open_input(in, e));
    return_if_error(ig_pread(in->fd, in->path, chunk, n, item->arg[1], e));
    if (in->carried) memcpy(chunk - in->carried, in->carry, in->carried);
    keep_carry(in, chunk, n);
    if (item->arg[1] + n < in->size || !in->file) return INGOT_OK;
    return_if_error(ig_src_file_same(in->file, in->fd, e));
    return ig_close(&in->fd, in->path, e);
}

static ingot_status stage_hash(void *ctx, struct ig_item *item, unsigned worker, ingot_error *e)
{
    struct pass *p = ctx;
    struct input *in = &p->inputs[item->arg[0]];
    const size_t n = length_of(p, item);
    const bool last = item->arg[1] + n == in->size;
    if (!in->file) { /* a pack is proven by its tree */
        struct ig_hand *hand = &p->workers[worker].hand;
        ig_leaves(hand->lanes, hand->leaves, chunk_of(p, item), n);
        return_if_error(ig_tree_add(in->tree, hand->leaves, (n + IG_PAGE - 1) / IG_PAGE, e));
        return last ? ig_tree_digest(in->tree, in->size, p->job->parent_digest, e) : INGOT_OK;
    }
    ig_sha_update(&in->sha, chunk_of(p, item), n);
    if (!last) return INGOT_OK;
    uint8_t *sha = p->job->plan->sources[item->arg[0]].sha256;
    ig_sha_final(&in->sha, sha);
    return ig_src_check_oid(in->file, sha, e);
}

/* Cast in pieces; the scratch keeps a span of what was cast before each, as a chunk does. */
static ingot_status place_cast(struct pass *p, struct ig_piece *piece, struct worker_state *w,
                               ingot_error *e)
{
    struct ig_job *job = p->job;
    const uint32_t row = piece->row, to = job->plan->rows[row].dtype,
                   from = job->plan->from[row].dtype;
    const uint64_t es = ig_dtypes[from].bits / 8, eo = ig_dtypes[to].bits / 8;
    const bool saturate = job->plan->job->saturate;
    const uint64_t first = piece->from / es, end = piece->to / es;
    uint64_t back = IG_SPAN / eo;
    if (back > first) back = first;
    struct ig_cast_counts unused = {0};
    uint64_t where = UINT64_MAX;
    uint8_t *fresh = w->scratch + IG_SPAN;
    ig_cast(fresh - back * eo, to, piece->bytes + ((first - back) * es - piece->avail), from, back,
            saturate, &unused, &where);
    for (uint64_t i = first; i < end;) {
        const uint64_t n = end - i < CAST_PIECE / eo ? end - i : CAST_PIECE / eo;
        const uint64_t before = w->counts.overflow;
        ig_cast(fresh, to, piece->bytes + (i * es - piece->avail), from, n, saturate, &w->counts,
                &where);
        if (w->counts.overflow != before)
            __atomic_fetch_add(&job->overflow[row], w->counts.overflow - before, __ATOMIC_RELAXED);
        const struct ig_piece out = {.row = row,
                                     .avail = (i - back) * eo,
                                     .from = i * eo,
                                     .to = (i + n) * eo,
                                     .bytes = fresh - back * eo,
                                     .hand = piece->hand};
        return_if_error(ig_emit(job, &out, e));
        i += n;
        back = IG_SPAN / eo < i ? IG_SPAN / eo : i;
        memmove(fresh - back * eo, fresh + n * eo - back * eo, back * eo);
    }
    return INGOT_OK;
}

static ingot_status place_row(struct pass *p, const struct ig_item *item, uint32_t row,
                              struct worker_state *w, ingot_error *e)
{
    const struct ig_plan *plan = p->job->plan;
    const struct ig_from *f = &plan->from[row];
    const uint64_t start = item->arg[1], end = start + length_of(p, item);
    const uint64_t carried = start < IG_CARRY ? start : IG_CARRY;
    const uint64_t lowest = start - carried; /* first byte of the file still in the buffer */
    struct ig_piece piece = {
        .row = row,
        .avail = lowest > f->offset ? lowest - f->offset : 0,
        .from = start > f->offset ? start - f->offset : 0,
        .to = end < f->offset + f->bytes ? end - f->offset : f->bytes,
        .hand = &w->hand,
    };
    piece.bytes = chunk_of(p, item) - carried + (f->offset + piece.avail - lowest);
    if (plan->rows[row].dtype == f->dtype) return ig_emit(p->job, &piece, e);
    if (plan->src) return_if_error(ig_emit_before(p->job, &piece, e));
    return place_cast(p, &piece, w, e);
}

static void report(struct pass *p, uint64_t n)
{
    const struct ig_progress *g = &p->job->plan->job->progress;
    pthread_mutex_lock(&p->lock);
    p->done += n;
    if (g->update) g->update(g->ctx, p->done, p->job->plan->read_bytes);
    pthread_mutex_unlock(&p->lock);
}

static ingot_status stage_place(void *ctx, struct ig_item *item, unsigned worker, ingot_error *e)
{
    struct pass *p = ctx;
    const struct input *in = &p->inputs[item->arg[0]];
    const struct ig_from *from = p->job->plan->from;
    const uint64_t start = item->arg[1], end = start + length_of(p, item);
    uint32_t low = 0, high = in->nrows; /* first row that ends behind the start */
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        const struct ig_from *f = &from[in->rows[mid]];
        if (f->offset + f->bytes <= start)
            low = mid + 1;
        else
            high = mid;
    }
    p->workers[worker].hand.item = item;
    for (; low < in->nrows && from[in->rows[low]].offset < end; low++)
        return_if_error(place_row(p, item, in->rows[low], &p->workers[worker], e));
    report(p, end - start);
    return INGOT_OK;
}

struct place {
    uint64_t offset;
    uint32_t input, row;
};

static int place_cmp(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->input != y->input) return x->input < y->input ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* The rows that copy, input by input in file order; each input gets its stretch of p->rows. */
static ingot_status sort_inputs(struct pass *p, ingot_error *e)
{
    const struct ig_plan *plan = p->job->plan;
    const uint32_t n = plan->norder;
    struct place *all = ig_array(n, sizeof *all);
    p->rows = ig_array(n, sizeof *p->rows);
    if (!all || !p->rows) {
        free(all);
        return ig_no_memory(e);
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = plan->order[i];
        all[i] = (struct place){plan->from[row].offset, plan->from[row].input, row};
    }
    if (n) qsort(all, n, sizeof *all, place_cmp);
    for (uint32_t i = 0; i < n; i++) {
        struct input *in = &p->inputs[all[i].input];
        if (in->nrows++ == 0) in->rows = p->rows + i;
        p->rows[i] = all[i].row;
    }
    free(all);
    return INGOT_OK;
}

static ingot_status set_up_worker(struct pass *p, unsigned i, ingot_error *e)
{
    struct worker_state *w = &p->workers[i];
    w->hand.leaves = malloc((p->chunk / IG_PAGE + IG_CARRY / IG_PAGE + 2) * IG_HASH);
    w->hand.bounce = ig_pages(IG_BOUNCE);
    w->hand.lanes = ig_lanes_new(p->workers[0].hand.lanes);
    w->scratch = p->job->overflow ? malloc(IG_SPAN + CAST_PIECE) : NULL;
    if (!w->hand.leaves || !w->hand.bounce || (p->job->overflow && !w->scratch))
        return ig_no_memory(e);
    return INGOT_OK;
}

static ingot_status set_up(struct pass *p, unsigned slots, unsigned lanes, ingot_error *e)
{
    const struct ig_plan *plan = p->job->plan;
    p->inputs = ig_array(p->ninputs, sizeof *p->inputs);
    p->buffers = ig_pages(slots * (IG_CARRY + p->chunk));
    p->workers = ig_array(p->nworkers, sizeof *p->workers);
    p->lane_input = ig_array(lanes, sizeof *p->lane_input);
    p->lane_offset = ig_array(lanes, sizeof *p->lane_offset);
    if (!p->inputs || !p->buffers || !p->workers || !p->lane_input || !p->lane_offset)
        return ig_no_memory(e);
    for (unsigned i = 0; i < lanes; i++) p->lane_input[i] = IG_NONE;
    for (uint32_t i = 0; i < p->ninputs; i++) {
        struct input *in = &p->inputs[i];
        in->fd = -1;
        if (plan->src) {
            in->file = &plan->src->weights[i];
            in->path = in->file->path;
            in->size = (uint64_t)in->file->st.st_size;
            in->phase = (8 + in->file->header.header_len) % IG_PAGE;
        } else {
            in->path = plan->parent->path;
            in->size = plan->parent->size;
            in->fd = plan->parent->fd;
        }
    }
    return_if_error(sort_inputs(p, e));
    for (unsigned i = 0; i < p->nworkers; i++) return_if_error(set_up_worker(p, i, e));
    return INGOT_OK;
}

static void tear_down(struct pass *p)
{
    for (uint32_t i = 0; p->inputs && i < p->ninputs; i++) {
        struct input *in = &p->inputs[i];
        if (in->file && in->fd >= 0) close(in->fd);
        free(in->carry);
        free(in->tree);
    }
    for (unsigned i = 0; p->workers && i < p->nworkers; i++) {
        free(p->workers[i].hand.leaves);
        free(p->workers[i].hand.bounce);
        ig_lanes_free(p->workers[i].hand.lanes);
        free(p->workers[i].scratch);
    }
    free(p->inputs);
    free(p->rows);
    free(p->buffers);
    free(p->workers);
    free(p->lane_input);
    free(p->lane_offset);
    pthread_mutex_destroy(&p->lock);
}

static void add_counts(struct ig_cast_counts *sum, const struct ig_cast_counts *c)
{
    sum->rounded += c->rounded;
    sum->subnormal += c->subnormal;
    sum->vanished += c->vanished;
    sum->overflow += c->overflow;
}

ingot_status ig_pass_run(struct ig_job *job, ingot_error *e)
{
    static const struct ig_stage stages[] = {
        {stage_read, true}, {stage_hash, true}, {stage_place, false}};
    struct pass p = {.job = job, .ninputs = job->plan->src ? job->plan->nsources : 1};
    const unsigned threads = job->threads < THREADS_MOST ? job->threads : THREADS_MOST;
    unsigned lanes = threads < LANES_MOST ? threads : LANES_MOST;
    if (lanes > p.ninputs) lanes = p.ninputs;
    if (lanes == 0) lanes = 1;
    /* A direct write keeps its worker waiting for the disk, while others have hashing to do. */
    p.nworkers = threads;
    if (job->out.past_cache >= 0) p.nworkers += WRITERS;
    unsigned slots = 2 * p.nworkers + 2;
    if (slots < 2 * lanes) slots = 2 * lanes;
    p.chunk = BUFFERS / slots < CHUNK_MOST ? BUFFERS / slots / IG_SPAN * IG_SPAN : CHUNK_MOST;
    if (p.chunk < IG_CARRY) p.chunk = IG_CARRY;
    pthread_mutex_init(&p.lock, NULL);
    ingot_status status = set_up(&p, slots, lanes, e);
    if (status == INGOT_OK) {
        const struct ig_pipe pipe = {.ctx = &p,
                                     .threads = p.nworkers,
                                     .busy = threads,
                                     .lanes = lanes,
                                     .slots = slots,
                                     .next = next,
                                     .stages = stages,
                                     .nstages = 3};
        status = ig_pipe_run(&pipe, e);
    }
    for (unsigned i = 0; p.workers && i < p.nworkers; i++)
        add_counts(&job->counts, &p.workers[i].counts);
    tear_down(&p);
    return status;
}
