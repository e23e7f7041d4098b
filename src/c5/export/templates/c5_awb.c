/* The light of a frame, in three steps: c5_count makes histograms, c5_emit runs the network, c5_locate finds the light.
 * docs/model-file.md of C5 says what each of them computes, and why. */
#include "c5_awb.h"

#include <math.h>
#include <stddef.h>

#include "c5_weights.h"

#define N C5_BINS
#define LIMIT ${limit}f  /* |u|, |v| of the outermost edges, in nats */
#define STEP (2 * LIMIT / N)
#define STRIPS $strips
#define MOST_COUNTED $pixels /* in frames with more pixels that count, rows are skipped */
#define CONSTANTS $n_constants /* maps that are the same for every frame, and seen beside its histograms */
#define FLOOR 1e-30f
#define FLAT 1e-21f

/* The network's maps are in blocks of eight channels, [channels / 8][n + 1][n][8], the last one padded with zeros: what
 * is done for one channel is done for eight side by side, which compilers vectorize. The last row of a block is unused:
 * so a 3x3 convolution may write its maps over its input, one row before it, where nobody needs them any more. */
#define LANES 8
#ifdef __clang__ /* unrolls a loop over lanes, then vectorizes the one around it, which takes three times as long */
#define LANEWISE _Pragma("clang loop vectorize(disable)")
#else
#define LANEWISE
#endif
#define BLOCK(n) (LANES * ((n) + 1) * (n))

/* Where everything is in the workspace. Space that is no longer needed is reused. */
$places

/* The numbers of a workspace, from a multiple of 64 bytes on: else vectors lie across two lines of the cache. */
static float *numbers_of(const c5_workspace *work)
{
    return (float *)(((uintptr_t)work->numbers + 63) / 64 * 64);
}

/* ---------------------------------------------------------------- histograms */

static const int powers[C5_SEEN] = {$powers}; /* of the brightness that weights colors; 1 for gradients */

typedef struct {
    const float *rgb;
    const uint8_t *ignore;
    int rows, columns;
} frame;

static int counts(const frame *f, int y, int x)
{
    const ptrdiff_t i = (ptrdiff_t)y * f->columns + x;
    const float *c = f->rgb + 3 * i;
    return !(f->ignore && f->ignore[i]) && c[0] < 1 && c[1] < 1 && c[2] < 1 && (c[0] > 0 || c[1] > 0 || c[2] > 0);
}

static int in_order(const frame *f) /* numbers that count must be numbers up to 1 */
{
    for (ptrdiff_t i = 0; i < (ptrdiff_t)f->rows * f->columns; i++)
        if (!f->ignore || !f->ignore[i])
            for (int c = 0; c < 3; c++)
                if (!(f->rgb[3 * i + c] <= 1 && f->rgb[3 * i + c] > -HUGE_VALF))
                    return 0;
    return 1;
}

static float positive(float value)
{
    return value > 0 ? value : 0;
}

/* Whether a pixel counts, and those above and below it. The border is repeated. */
static int column_counts(const frame *f, int y, int x)
{
    return counts(f, y, x) && (y == 0 || counts(f, y - 1, x)) && (y + 1 == f->rows || counts(f, y + 1, x));
}

/* The mean absolute difference of a pixel to its eight neighbors. The border is repeated. */
static void gradient(const frame *f, int y, int x, float color[3])
{
    const int rows[3] = {y > 0 ? y - 1 : 0, y, y + 1 < f->rows ? y + 1 : y};
    const int columns[3] = {x > 0 ? x - 1 : 0, x, x + 1 < f->columns ? x + 1 : x};
    const float *at = f->rgb + 3 * ((ptrdiff_t)y * f->columns + x);
    const float here[3] = {positive(at[0]), positive(at[1]), positive(at[2])};
    color[0] = color[1] = color[2] = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            const float *there = f->rgb + 3 * ((ptrdiff_t)rows[i] * f->columns + columns[j]);
            for (int c = 0; c < 3; c++)
                color[c] += fabsf(here[c] - positive(there[c])) * 0.125f;
        }
}

/* A color shared between the four bins around it. `bins` is N x N, `within` the weight of those in range. */
static void share(const float color[3], int power, float *bins, float *within)
{
    const float r = color[0] + FLOOR, g = color[1] + FLOOR, b = color[2] + FLOOR;
    const float u = logf(g / r), v = logf(g / b), brightness = g * expf((u + v) / -3);
    const float x = u / STEP + (N - 1) / 2.0f, y = v / STEP + (N - 1) / 2.0f;
    if (!(x >= -1 && x < N && y >= -1 && y < N))
        return;
    float weight = 1;
    for (int p = 0; p < power; p++)
        weight *= brightness;
    *within += weight;
    const int left = (int)floorf(x), low = (int)floorf(y);
    const float right = x - (float)left, high = y - (float)low;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            if (low + i >= 0 && low + i < N && left + j >= 0 && left + j < N)
                bins[(low + i) * N + left + j] += weight * (i ? high : 1 - high) * (j ? right : 1 - right);
}

/* Blurred by [1 2 1] / 4 along both axes, divided by its sum, and the square root taken. 0 if there is nothing. */
static int scale(float *bins, float least)
{
    float above[N] = {0}, row[N + 2] = {0}, sum = 0;
    for (int y = 0; y < N; y++, bins += N) {
        for (int x = 0; x < N; x++) {
            row[x + 1] = 0.25f * above[x] + 0.5f * bins[x] + (y + 1 < N ? 0.25f * bins[N + x] : 0);
            above[x] = bins[x];
        }
        for (int x = 0; x < N; x++) {
            bins[x] = 0.25f * row[x] + 0.5f * row[x + 1] + 0.25f * row[x + 2];
            sum += bins[x];
        }
    }
    const float share = sum > least ? 1 / sum : 0;
    bins -= N * N;
    for (int i = 0; i < N * N; i++)
        bins[i] = sqrtf(share * bins[i]);
    return sum > least;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static void zero(float *numbers, int count)
{
    for (int i = 0; i < count; i++)
        numbers[i] = 0;
}

/* Adds a strip, times a factor, to the histograms. */
static void add(const float *restrict strip, float factor, float *restrict bins)
{
    for (int i = 0; i < N * N; i++)
        bins[i] += factor * strip[i];
}

c5_state c5_count(c5_workspace *work, const float *rgb, const uint8_t *ignore, int rows, int columns)
{
    float *const numbers = numbers_of(work), *const strip = numbers + STRIP;
    float *seen = numbers + SEEN, *searched = numbers + SEARCHED;
    const frame f = {rgb, ignore, rows, columns};
    if (rows < 1 || columns < 1 || rows > C5_MOST_PIXELS / columns)
        return C5_BAD_SIZE;
    if (!in_order(&f))
        return C5_BAD_NUMBER;
    long counted = 0;
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++)
            counted += counts(&f, y, x);
    if (!counted)
        return C5_NOTHING_COUNTS;
    int every = counted / MOST_COUNTED > 1 ? (int)(counted / MOST_COUNTED) : 1;
    long left = 0;
    for (int y = 0; y < rows; y += every)
        for (int x = 0; x < columns; x++)
            left += counts(&f, y, x);
    if (!left)
        every = 1;

    for (int c = 0; c < C5_SEEN; c++, seen += N * N, searched += N * N) {
        zero(seen, N * N);
        zero(searched, N * N);
        for (int s = 0; s < STRIPS; s++) { /* each weighted by how many of its colors count, however bright it is */
            const int first = s * rows / STRIPS, end = (s + 1) * rows / STRIPS;
            float within = 0;
            long colors = 0;
            zero(strip, N * N);
            for (int y = (first + every - 1) / every * every; y < end; y += every) {
                int here = 0, next = c == C5_SEEN - 1 && column_counts(&f, y, 0); /* of three columns */
                for (int x = 0; x < columns; x++) {
                    float color[3];
                    if (c == C5_SEEN - 1) {
                        const int before = x == 0 || here;
                        here = next;
                        next = x + 1 == columns || column_counts(&f, y, x + 1);
                        if (!(before && here && next))
                            continue;
                        gradient(&f, y, x, color);
                    } else {
                        if (!counts(&f, y, x))
                            continue;
                        for (int k = 0; k < 3; k++)
                            color[k] = positive(rgb[3 * ((ptrdiff_t)y * columns + x) + k]);
                    }
                    colors++;
                    share(color, powers[c], strip, &within);
                }
            }
            const float even = within > (c == C5_SEEN - 1 ? FLAT : 0) ? (float)colors / within : 0;
            add(strip, 1, seen);
            add(strip, even, searched);
        }
        const float least = c == C5_SEEN - 1 ? FLAT : 0;
        const int there = scale(seen, least);
        scale(searched, least);
        if (c == 0 && !there)
            return C5_OUT_OF_RANGE;
    }
    return C5_OK;
}

/* ---------------------------------------------------------------- network */

/* A map [N][N] to a channel of a block. */
static void place(const float *restrict map, int channel, float *restrict blocks)
{
    blocks += channel / LANES * BLOCK(N) + channel % LANES;
    for (int i = 0; i < N * N; i++)
        blocks[LANES * i] = map[i];
}

/* Histograms, and what is constant, side by side. */
static void see(const float *seen, float *blocks)
{
    zero(blocks, (C5_SEEN + CONSTANTS + LANES - 1) / LANES * BLOCK(N));
    for (int c = 0; c < C5_SEEN; c++)
        place(seen + c * N * N, c, blocks);
$constants}

/* The first channels of a block are the maps, or are added to them, [C5_MAPS][N][N]. */
static void collect(const float *restrict blocks, int add, float *restrict maps)
{
    for (int c = 0; c < C5_MAPS; c++, maps += N * N) {
        const float *const from = blocks + c / LANES * BLOCK(N) + c % LANES;
        for (int i = 0; i < N * N; i++)
            maps[i] = (add ? maps[i] : 0) + from[LANES * i];
    }
}

static inline float rectify(float value, float slope) /* slope is at most 1 */
{
    const float less = slope * value;
    return value > less ? value : less;
}

/* Eight inputs at each of some places [places][8], times their weights [8][8], make the sums of eight outputs there, or
 * are added to them. */
static void multiply(int places, int add, const float *restrict in, const float *restrict w, float *restrict sums)
{
    if (add)
        LANEWISE for (int i = 0; i < places; i++, in += LANES, sums += LANES)
            for (int k = 0; k < LANES; k++)
                sums[k] += (in[0] * w[k] + in[1] * w[8 + k] + in[2] * w[16 + k] + in[3] * w[24 + k])
                    + (in[4] * w[32 + k] + in[5] * w[40 + k] + in[6] * w[48 + k] + in[7] * w[56 + k]);
    else
        LANEWISE for (int i = 0; i < places; i++, in += LANES, sums += LANES)
            for (int k = 0; k < LANES; k++)
                sums[k] = (in[0] * w[k] + in[1] * w[8 + k] + in[2] * w[16 + k] + in[3] * w[24 + k])
                    + (in[4] * w[32 + k] + in[5] * w[40 + k] + in[6] * w[48 + k] + in[7] * w[56 + k]);
}

/* Finishes the sums of a block of outputs at some places of a row: adds the bias, and rectifies. */
static inline void finish(
    const c5_layer *layer, int block, int place, int places, const float *restrict sums, float *restrict out)
{
    const int n = layer->n;
    const float slope = layer->slope;
    out += BLOCK(n) * block + LANES * place;
    if (layer->bias_map) {
        const $bias_type *restrict bias = layer->bias_map + LANES * (n * n * block + place);
        for (int i = 0; i < LANES * places; i++)
            out[i] = rectify(sums[i] + $biased, slope);
    } else {
        const float *restrict bias = layer->bias + LANES * block;
        LANEWISE for (int i = 0; i < places; i++)
            for (int k = 0; k < LANES; k++)
                out[LANES * i + k] = rectify(sums[LANES * i + k] + bias[k], slope);
    }
}

/* The weights of a block of inputs for a block of outputs, [8][side][side][8]. */
static const float *weights_of(const c5_layer *layer, int block, int input, float *restrict space)
{
    const int count = LANES * layer->side * layer->side;
    const c5_weight *restrict from = layer->weights + count * (block * layer->inputs + input);
$weights
}

/* 1x1, as it is defined. */
static void convolve_1x1(const c5_layer *layer, const float *const *tensors, float *out, float *sums)
{
    const int places = layer->n * layer->n;
    float *const space = sums + LANES * places;
    for (int o = 0; LANES * o < layer->outputs; o++) {
        for (int t = 0, input = 0; t < layer->tensors; t++)
            for (int c = 0; c < layer->channels[t]; c += LANES, input += LANES)
                multiply(places, input > 0, tensors[t] + c / LANES * BLOCK(layer->n),
                    weights_of(layer, o, input, space), sums);
        finish(layer, o, 0, places, sums, out);
    }
}

/* 3x3. A tile of 4x4 outputs takes 144 products as defined, and 36 by Winograd's F(4x4, 3x3): 36 combinations of the
 * 6x6 inputs around it, times 36 of the 3x3 weights, are summed over the inputs, and 16 combinations of the sums are the
 * outputs (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016). All are made along one axis,
 * then along the other: down the maps for whole rows of tiles at once, and across them tile by tile. */
#define TILES $tiles /* processed at a time, a row of them or several: their data stay in caches */
#define KEPT $kept /* blocks of transformed weights at most are kept for the next tiles: more are made again */
#define SPOT (LANES * TILES) /* one of the 36 numbers of every tile */
#define LINE (LANES * (4 * TILES + 2)) /* a row of a map, and a place on either side of it */

static inline void combine_weights(const float *restrict in, int step, float *restrict out, int out_step) /* 3 to 6 */
{
    for (int k = 0; k < LANES; k++) {
        const float a = in[k], b = in[step + k], c = in[2 * step + k];
        const float near = (a + c) * (-1 / 6.0f), far = a * (1 / 24.0f) + c * (1 / 6.0f);
        out[k] = a * 0.25f;
        out[out_step + k] = near - b * (1 / 6.0f);
        out[2 * out_step + k] = near + b * (1 / 6.0f);
        out[3 * out_step + k] = far + b * (1 / 12.0f);
        out[4 * out_step + k] = far - b * (1 / 12.0f);
        out[5 * out_step + k] = c;
    }
}

static inline void combine_inputs(int places, const float *restrict in0, const float *restrict in1,
    const float *restrict in2, const float *restrict in3, const float *restrict in4, const float *restrict in5,
    float *restrict out, int step) /* 6 to 6 */
{
    for (int k = 0; k < LANES * places; k++) {
        const float a = in0[k], b = in1[k], c = in2[k], d = in3[k], e = in4[k], f = in5[k];
        const float far = e - 4 * c, outer = d - 4 * b, near = e - c, inner = d - b;
        out[k] = 4 * (a - c) + near;
        out[step + k] = far + outer;
        out[2 * step + k] = far - outer;
        out[3 * step + k] = near + 2 * inner;
        out[4 * step + k] = near - 2 * inner;
        out[5 * step + k] = f - d - 4 * inner;
    }
}

static inline void combine_sums(
    int places, const float *restrict in, int step, float *restrict out, int out_step) /* 6 to 4 */
{
    for (int k = 0; k < LANES * places; k++) {
        const float b = in[step + k], c = in[2 * step + k], d = in[3 * step + k], e = in[4 * step + k];
        const float sum = b + c, apart = b - c, far_sum = d + e, far_apart = d - e;
        out[k] = in[k] + sum + far_sum;
        out[out_step + k] = apart + 2 * far_apart;
        out[2 * out_step + k] = sum + 4 * far_sum;
        out[3 * out_step + k] = apart + 8 * far_apart + in[5 * step + k];
    }
}

/* The transformed weights of a block of inputs for a block of outputs, [36][8][8]. */
static void transform_weights(const float *w, float *out)
{
    float half[3 * 6 * LANES];
    LANEWISE for (int i = 0; i < LANES; i++, w += 9 * LANES, out += LANES) {
        LANEWISE for (int row = 0; row < 3; row++)
            combine_weights(w + 3 * LANES * row, LANES, half + 6 * LANES * row, LANES);
        LANEWISE for (int column = 0; column < 6; column++)
            combine_weights(half + LANES * column, 6 * LANES, out + LANES * LANES * column, 6 * LANES * LANES);
    }
}

/* The transformed inputs of a row of tiles, of one block. Beyond the edges are zeros. */
static void transform_inputs(const float *map, int n, int row, float *lines, float *tiles)
{
    static const float nothing[LANES * N] = {0};
    const float *in[6];
    for (int i = 0; i < 6; i++) {
        const int y = 4 * row - 1 + i;
        in[i] = y >= 0 && y < n ? map + LANES * n * y : nothing;
        zero(lines + LINE * i, LANES);
        zero(lines + LINE * i + LANES * (n + 1), LANES * 4);
    }
    combine_inputs(n, in[0], in[1], in[2], in[3], in[4], in[5], lines + LANES, LINE);
    LANEWISE for (int left = 0; left < n; left += 4, lines += 4 * LANES, tiles += LANES)
        LANEWISE for (int i = 0; i < 6; i++) {
            const float *at = lines + LINE * i;
            combine_inputs(1, at, at + LANES, at + 2 * LANES, at + 3 * LANES, at + 4 * LANES, at + 5 * LANES,
                tiles + 6 * SPOT * i, SPOT);
        }
}

/* A row of tiles of a block of outputs from its sums. */
static void transform_sums(const c5_layer *layer, int block, int row, const float *sums, float *lines, float *out)
{
    const int n = layer->n;
    float *const whole = lines + 6 * LINE;
    LANEWISE for (int left = 0; left < n; left += 4, sums += LANES)
        LANEWISE for (int i = 0; i < 6; i++)
            combine_sums(1, sums + 6 * SPOT * i, SPOT, lines + LINE * i + LANES * left, LANES);
    combine_sums(n, lines, LINE, whole, LINE);
    for (int i = 0; i < 4 && 4 * row + i < n; i++)
        finish(layer, block, (4 * row + i) * n, n, whole + LINE * i, out);
}

static void convolve_3x3(const c5_layer *layer, const float *const *tensors, float *out, float *scratch)
{
    const int n = layer->n, blocks = (layer->outputs + LANES - 1) / LANES, across = (n + 3) / 4;
    const int together = least(TILES / across, across); /* rows of tiles */
    float *const lines = scratch;                       /* [10][LINE] */
    float *const tiles = lines + 10 * LINE;             /* [36][tiles][8] */
    float *const sums = tiles + 36 * SPOT;              /* the same, for each block of outputs */
    float *const space = sums + 36 * SPOT * blocks;     /* [8][3][3][8] */
    float *const weights = space + 72 * LANES;          /* [36][8][8], for each block of outputs and inputs if kept */
    const int kept = across > together && blocks * layer->inputs <= KEPT * LANES;
    for (int first = 0; first < across; first += together) {
        const int rows = least(together, across - first), count = rows * across;
        float *w = weights;
        for (int t = 0, input = 0; t < layer->tensors; t++)
            for (int c = 0; c < layer->channels[t]; c += LANES, input += LANES) {
                const float *const in = tensors[t] + c / LANES * BLOCK(n);
                for (int i = 0; i < rows; i++)
                    transform_inputs(in, n, first + i, lines, tiles + LANES * across * i);
                for (int o = 0; o < blocks; o++, w += kept ? 36 * LANES * LANES : 0) {
                    if (first == 0 || !kept)
                        transform_weights(weights_of(layer, o, input, space), w);
                    for (int k = 0; k < 36; k++)
                        multiply(count, input > 0, tiles + SPOT * k, w + LANES * LANES * k, sums + SPOT * (36 * o + k));
                }
            }
        for (int o = 0; o < blocks; o++)
            for (int i = 0; i < rows; i++)
                transform_sums(layer, o, first + i, sums + 36 * SPOT * o + LANES * across * i, lines, out);
    }
}

/* A convolution of several tensors side by side. */
static void convolve(const c5_layer *layer, const float *const *tensors, float *out, float *scratch)
{
    if (layer->side == 3)
        convolve_3x3(layer, tensors, out, scratch);
    else
        convolve_1x1(layer, tensors, out, scratch);
}

static float larger(float a, float b)
{
    return a > b ? a : b;
}

/* The largest of each 2x2, to n x n. */
static void pool(int channels, int n, const float *restrict in, float *restrict out)
{
    const int row = 2 * LANES * n;
    for (int c = 0; c < channels; c += LANES, in += row, out += LANES * n)
        for (int y = 0; y < n; y++, in += row)
            LANEWISE for (int x = 0; x < n; x++, in += 2 * LANES, out += LANES)
                for (int k = 0; k < LANES; k++)
                    out[k] = larger(larger(in[k], in[LANES + k]), larger(in[row + k], in[row + LANES + k]));
}

/* Twofold and bilinear, corners on corners, from n x n: number 2k of a line lies k / (2n - 1) before number k of the
 * old one, and number 2k + 1 half of the rest behind it. Rows are first widened into the lower half of the new map,
 * then spread over all of it from the top: no row is overwritten before it is read. */
static void upsample(int channels, int n, const float *in, float *out)
{
    const int row = 2 * LANES * n;
    const float step = 1.0f / (float)(2 * n - 1);
    for (int c = 0; c < channels; c += LANES, in += LANES * n, out += row) {
        float *const wide = out + n * row, *to = wide;
        for (int y = 0; y < n; y++)
            LANEWISE for (int x = 0; x < n; x++, in += LANES, to += 2 * LANES) {
                const float before = (float)x * step, behind = 0.5f - ((float)x + 0.5f) * step;
                const float *last = x > 0 ? in - LANES : in, *next = x < n - 1 ? in + LANES : in;
                for (int k = 0; k < LANES; k++) {
                    to[k] = before * last[k] + (1 - before) * in[k];
                    to[LANES + k] = (1 - behind) * in[k] + behind * next[k];
                }
            }
        for (int y = 0; y < n; y++, out += 2 * row) {
            const float before = (float)y * step, behind = 0.5f - ((float)y + 0.5f) * step;
            const float *here = wide + y * row;
            const float *last = y > 0 ? here - row : here, *next = y < n - 1 ? here + row : here;
            for (int i = 0; i < row; i++) {
                const float even = before * last[i] + (1 - before) * here[i];
                out[row + i] = (1 - behind) * here[i] + behind * next[i];
                out[i] = even;
            }
        }
    }
}

/* Each channel to mean 0 and variance 1, then rectified. In place. */
static void normalize(int channels, int n, float epsilon, float slope, float *maps)
{
    const float share = 1.0f / (float)(n * n);
    for (int c = 0; c < channels; c += LANES, maps += BLOCK(n)) {
        float mean[LANES] = {0}, factor[LANES] = {0};
        for (int y = 0; y < n; y++) { /* row by row: rounding stays small */
            float sum[LANES] = {0};
            LANEWISE for (int x = 0; x < n; x++)
                for (int k = 0; k < LANES; k++)
                    sum[k] += maps[LANES * (y * n + x) + k];
            for (int k = 0; k < LANES; k++)
                mean[k] += share * sum[k];
        }
        for (int y = 0; y < n; y++) {
            float sum[LANES] = {0};
            LANEWISE for (int x = 0; x < n; x++)
                for (int k = 0; k < LANES; k++) {
                    const float off = maps[LANES * (y * n + x) + k] - mean[k];
                    sum[k] += off * off;
                }
            for (int k = 0; k < LANES; k++)
                factor[k] += share * sum[k];
        }
        for (int k = 0; k < LANES; k++)
            factor[k] = 1 / sqrtf(factor[k] + epsilon);
        LANEWISE for (int i = 0; i < n * n; i++)
            for (int k = 0; k < LANES; k++)
                maps[LANES * i + k] = rectify((maps[LANES * i + k] - mean[k]) * factor[k], slope);
    }
}

void c5_emit(c5_workspace *work)
{
    float *const t = numbers_of(work);
$calls}

/* ---------------------------------------------------------------- light */

static float at_bin(int i) /* u of a column, v of a row */
{
    return ((float)i - (N - 1) / 2.0f) * STEP;
}

/* The searched histograms convolved with the filters, whose origin is bin (N/2, N/2), times gain, plus bias: eight bins
 * of a histogram at a time, with all rows of a filter. Most bins are empty, and cost nothing. */
static void score(const float *searched, const float *maps, float *lines, float *scores)
{
    zero(scores, N * N);
    zero(lines, 2 * N * N); /* the rows of a filter, with zeros on both sides */
    for (int channel = 0; channel < C5_SEEN; channel++) {
        for (int i = 0; i < N * N; i++)
            lines[2 * N * (i / N) + N / 2 + i % N] = maps[channel * N * N + i];
        for (int i = 0; i < N * N; i += 8, searched += 8) {
            const float a = searched[0], b = searched[1], c = searched[2], d = searched[3];
            const float e = searched[4], f = searched[5], g = searched[6], h = searched[7];
            if (!(a + b + c + d + e + f + g + h > 0))
                continue;
            for (int y = 0; y < N; y++) {
                const int k = y - i / N + N / 2; /* the row of the filter */
                if (k < 0 || k >= N)
                    continue;
                const float *restrict at = lines + 2 * N * k + N - i % N;
                float *restrict row = scores + N * y;
                for (int x = 0; x < N; x++, at++)
                    row[x] += (a * at[0] + b * at[-1] + c * at[-2] + d * at[-3])
                        + (e * at[-4] + f * at[-5] + g * at[-6] + h * at[-7]);
            }
        }
    }
    for (int i = 0; i < N * N; i++)
        scores[i] = ${gained}scores[i] + maps[C5_SEEN * N * N + i];
}

void c5_locate(c5_workspace *work, c5_estimate *estimate)
{
    float *const numbers = numbers_of(work), *const scores = numbers + SCORES;
    float red[N]; /* of the light at a column, if green is 1; blue at a row is the same */
    score(numbers + SEARCHED, numbers + MAPS, numbers + LINES, scores);
    float highest = scores[0], sum = 0, u = 0, v = 0;
    for (int i = 1; i < N * N; i++)
        highest = scores[i] > highest ? scores[i] : highest;
    for (int y = 0; y < N; y++)
        for (int x = 0; x < N; x++) {
            const float below = scores[y * N + x] - highest, heat = below > -30 ? expf(below) : 0;
            scores[y * N + x] = heat;
            sum += heat;
            u += heat * at_bin(x);
            v += heat * at_bin(y);
        }
    u /= sum;
    v /= sum;
    const float r = expf(-u), b = expf(-v), length = sqrtf(r * r + 1 + b * b);
    float angle = 0;
    for (int x = 0; x < N; x++)
        red[x] = expf(-at_bin(x));
    for (int y = 0; y < N; y++)
        for (int x = 0; x < N; x++)
            if (scores[y * N + x] > 1e-9f * sum) {
                const float other = sqrtf(red[x] * red[x] + 1 + red[y] * red[y]);
                const float cosine = (r * red[x] + 1 + b * red[y]) / (length * other);
                angle += scores[y * N + x] * acosf(cosine < 1 ? cosine : 1);
            }
    estimate->illuminant[0] = r / length;
    estimate->illuminant[1] = 1 / length;
    estimate->illuminant[2] = b / length;
    estimate->gains[0] = 1 / r;
    estimate->gains[1] = 1;
    estimate->gains[2] = 1 / b;
    estimate->uncertainty = angle / sum * 57.29577951f;
    estimate->bound = ${bound_factor}f * sqrtf(estimate->uncertainty * estimate->uncertainty + ${bound_least}f * ${bound_least}f);
}

c5_state c5_estimate_frame(
    c5_workspace *work, const float *rgb, const uint8_t *ignore, int rows, int columns, c5_estimate *estimate)
{
    const c5_state state = c5_count(work, rgb, ignore, rows, columns);
    if (state == C5_OK) {
        c5_emit(work);
        c5_locate(work, estimate);
    }
    return state;
}

float c5_seen(const c5_workspace *work, int channel, int v, int u)
{
    return numbers_of(work)[SEEN + (channel * N + v) * N + u];
}

float c5_searched(const c5_workspace *work, int channel, int v, int u)
{
    return numbers_of(work)[SEARCHED + (channel * N + v) * N + u];
}

float c5_map(const c5_workspace *work, int map, int v, int u)
{
    return numbers_of(work)[MAPS + (map * N + v) * N + u];
}
