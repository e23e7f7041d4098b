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
#define MOST_COUNTED $pixels /* of frames with more pixels that count, rows are left out */
#define FLOOR 1e-30f
#define FLAT 1e-21f

/* Maps are kept with zeros around them, so that convolutions need not ask where they are: a row of zeros above and
 * below, and a zero before each row, which is also the one after the row before. */
#define ROW(n) ((n) + 1)
#define PLANE(n) (((n) + 2) * ROW(n) + 1)
#define AT(n, y, x) (((y) + 1) * ROW(n) + (x) + 1)

/* Where everything is in the workspace. What is not needed any more makes room. */
$places

/* ---------------------------------------------------------------- histograms */

static const int powers[C5_SEEN] = {$powers}; /* of the brightness, which colors weigh by; gradients by the first */

typedef struct {
    const float *rgb;
    const uint8_t *ignore;
    int rows, columns;
} frame;

static int counts(const frame *f, int y, int x)
{
    const float *c = f->rgb + 3 * ((ptrdiff_t)y * f->columns + x);
    if (f->ignore && f->ignore[(ptrdiff_t)y * f->columns + x])
        return 0;
    return c[0] < 1 && c[1] < 1 && c[2] < 1 && (c[0] > 0 || c[1] > 0 || c[2] > 0);
}

static int in_order(const frame *f) /* numbers that count must be numbers */
{
    for (ptrdiff_t i = 0; i < (ptrdiff_t)f->rows * f->columns; i++)
        if (!f->ignore || !f->ignore[i])
            for (int c = 0; c < 3; c++)
                if (!(f->rgb[3 * i + c] <= 1 && f->rgb[3 * i + c] > -HUGE_VALF))
                    return 0;
    return 1;
}

static float channel(const frame *f, int y, int x, int c) /* the border is repeated */
{
    y = y < 0 ? 0 : y < f->rows ? y : f->rows - 1;
    x = x < 0 ? 0 : x < f->columns ? x : f->columns - 1;
    const float value = f->rgb[3 * ((ptrdiff_t)y * f->columns + x) + c];
    return value > 0 ? value : 0;
}

/* The mean absolute difference of a pixel to its eight neighbours; 0 if one of the nine does not count. */
static int gradient(const frame *f, int y, int x, float color[3])
{
    for (int i = y - 1; i <= y + 1; i++)
        for (int j = x - 1; j <= x + 1; j++)
            if (i >= 0 && i < f->rows && j >= 0 && j < f->columns && !counts(f, i, j))
                return 0;
    for (int c = 0; c < 3; c++) {
        const float here = channel(f, y, x, c);
        float sum = 0;
        for (int i = y - 1; i <= y + 1; i++)
            for (int j = x - 1; j <= x + 1; j++)
                sum += fabsf(here - channel(f, i, j, c));
        color[c] = sum / 8;
    }
    return 1;
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
    for (int axis = 0; axis < 2; axis++) {
        const int step = axis ? 1 : N, line = axis ? N : 1;
        for (int k = 0; k < N; k++) {
            float before = 0, here = bins[k * line];
            for (int i = 0; i < N; i++) {
                float *bin = bins + k * line + i * step;
                const float after = i + 1 < N ? bin[step] : 0;
                *bin = 0.25f * before + 0.5f * here + 0.25f * after;
                before = here;
                here = after;
            }
        }
    }
    float sum = 0;
    for (int i = 0; i < N * N; i++)
        sum += bins[i];
    for (int i = 0; i < N * N; i++)
        bins[i] = sum > least ? sqrtf(bins[i] / sum) : 0;
    return sum > least;
}

static void zero(float *numbers, int count)
{
    for (int i = 0; i < count; i++)
        numbers[i] = 0;
}

c5_state c5_count(c5_workspace *work, const float *rgb, const uint8_t *ignore, int rows, int columns)
{
    float *const searched = work->numbers + SEARCHED, *const whole = work->numbers + WHOLE;
    float *const strip = work->numbers + STRIP, *const seen = work->numbers + HISTOGRAMS;
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

    for (int c = 0; c < C5_SEEN; c++) {
        zero(whole + c * N * N, N * N);
        zero(searched + c * N * N, N * N);
        for (int s = 0; s < STRIPS; s++) { /* each weighs by how many of its colors count, however bright it is */
            const int first = s * rows / STRIPS, end = (s + 1) * rows / STRIPS;
            float within = 0;
            long colors = 0;
            zero(strip, N * N);
            for (int y = (first + every - 1) / every * every; y < end; y += every)
                for (int x = 0; x < columns; x++) {
                    float color[3];
                    if (c == C5_SEEN - 1) {
                        if (!gradient(&f, y, x, color))
                            continue;
                    } else {
                        if (!counts(&f, y, x))
                            continue;
                        for (int k = 0; k < 3; k++)
                            color[k] = channel(&f, y, x, k);
                    }
                    colors++;
                    share(color, powers[c], strip, &within);
                }
            const float even = within > (c == C5_SEEN - 1 ? FLAT : 0) ? (float)colors / within : 0;
            for (int i = 0; i < N * N; i++) {
                whole[c * N * N + i] += strip[i];
                searched[c * N * N + i] += even * strip[i];
            }
        }
        const float least = c == C5_SEEN - 1 ? FLAT : 0;
        const int there = scale(whole + c * N * N, least);
        scale(searched + c * N * N, least);
        if (c == 0 && !there)
            return C5_OUT_OF_RANGE;
        zero(seen + c * PLANE(N), PLANE(N));
        for (int y = 0; y < N; y++)
            for (int x = 0; x < N; x++)
                seen[c * PLANE(N) + AT(N, y, x)] = whole[(c * N + y) * N + x];
    }
    return C5_OK;
}

/* ---------------------------------------------------------------- network */

/* Convolutions work on a few rows at a time, for four outputs at a time. Weights are stored as they are needed: for four
 * outputs, for each input, for each column of the window, for each row of it, those of the four outputs. */
#define BLOCK 272 /* numbers of a map that are worked on at a time: they stay in the nearest cache */
#define TILES 64  /* the same in tiles of four */
#define CHUNK 8   /* inputs that are transformed at a time */

static void clear_edges(float *plane, int n)
{
    zero(plane, ROW(n));
    for (int y = 0; y <= n; y++)
        plane[AT(n, y, -1)] = 0;
    zero(plane + AT(n, n, -1), ROW(n) + 1);
}

static float rectify(float value, float slope) /* slope is at most 1 */
{
    const float less = slope * value;
    return value > less ? value : less;
}

/* A row of an output, made right: scaled, with its bias, rectified. */
static void finish(const c5_layer *layer, int output, int y, const float *restrict sums, float *restrict out)
{
    const int n = layer->n;
    const float slope = layer->slope;
    if (layer->bias_map) {
        const $bias_type *restrict bias = layer->bias_map + (output * n + y) * n;
        for (int x = 0; x < n; x++)
            out[x] = rectify($scaled + $biased, slope);
    } else {
        const float bias = layer->bias[output];
        for (int x = 0; x < n; x++)
            out[x] = rectify($scaled + bias, slope);
    }
}

/* Adds a row of the window, or its one weight, times a stretch of one input, to the same stretch of four outputs. */
static void add_row(float *restrict sums, const float *restrict in, const c5_weight *w, int length)
{
    for (int o = 0; o < 4; o++, sums += BLOCK) {
        const float a = w[o], b = w[12 + o], c = w[24 + o];
        for (int x = 0; x < length; x++)
            sums[x] = c * in[x + 1] + (b * in[x] + (a * in[x - 1] + sums[x]));
    }
}

static void add_one(float *restrict sums, const float *restrict in, const c5_weight *w, int length)
{
    for (int o = 0; o < 4; o++, sums += BLOCK) {
        const float a = w[o];
        for (int x = 0; x < length; x++)
            sums[x] += a * in[x];
    }
}

/* As it is defined: for 1x1, and for small maps. */
static void convolve_small(const c5_layer *layer, const float *const *inputs, float *out)
{
    float sums[4 * BLOCK];
    const int n = layer->n, most = BLOCK / ROW(n);
    for (int top = 0; top < n; top += most) {
        const int rows = n - top < most ? n - top : most, length = rows * ROW(n) - 1, start = AT(n, top, 0);
        const c5_weight *w = layer->weights;
        for (int o = 0; o < layer->outputs; o += 4) {
            zero(sums, 4 * BLOCK);
            for (int k = 0; k < layer->tensors; k++)
                for (int i = 0; i < layer->channels[k]; i++, w += 4 * layer->side * layer->side) {
                    const float *in = inputs[k] + i * PLANE(n) + start;
                    if (layer->side == 1)
                        add_one(sums, in, w, length);
                    else
                        for (int row = 0; row < 3; row++)
                            add_row(sums, in + (row - 1) * ROW(n), w + 4 * row, length);
                }
            for (int k = 0; k < 4 && o + k < layer->outputs; k++)
                for (int y = 0; y < rows; y++)
                    finish(layer, o + k, top + y, sums + k * BLOCK + y * ROW(n), out + (o + k) * PLANE(n) + start + y * ROW(n));
        }
    }
}

/* Four numbers of a row, convolved with three weights, take twelve products as defined, and six by Winograd's F(4, 3):
 * six combinations of the six inputs, times six of the three weights, of which four combinations are the outputs
 * (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016). A tile is four numbers of a row; what
 * follows has a number for each tile of a block of rows, for each of the six. */

static void transform_input(const float *plane, int n, int top, int rows, float *restrict tiles)
{
    const int width = n / 4, all = (rows + 2) * width;
    for (int y = 0; y < rows + 2; y++, tiles += width) {
        const float *restrict row = plane + AT(n, top + y - 1, 0);
        for (int x = 0; x < width; x++) {
            const float *d = row + 4 * x;
            const float near = d[3] - d[1], far = d[3] - 4 * d[1], inner = d[2] - d[0], outer = d[2] - 4 * d[0];
            tiles[x] = 4 * d[-1] - 5 * d[1] + d[3];
            tiles[x + all] = far + outer;
            tiles[x + 2 * all] = far - outer;
            tiles[x + 3 * all] = near + 2 * inner;
            tiles[x + 4 * all] = near - 2 * inner;
            tiles[x + 5 * all] = 4 * d[0] - 5 * d[2] + d[4];
        }
    }
}

static void transform_weights(const c5_weight *w, float g[6][12])
{
    for (int i = 0; i < 12; i++) {
        const float a = w[i], b = w[12 + i], c = w[24 + i], sum = a + c, far = a * (1 / 24.0f) + c * (1 / 6.0f);
        g[0][i] = a * 0.25f;
        g[1][i] = (sum + b) * (-1 / 6.0f);
        g[2][i] = (b - sum) * (1 / 6.0f);
        g[3][i] = far + b * (1 / 12.0f);
        g[4][i] = far - b * (1 / 12.0f);
        g[5][i] = c;
    }
}

static void add_tiles(float *restrict sums, const float *restrict tiles, float g[6][12], int width, int rows)
{
    const int length = rows * width;
    for (int k = 0; k < 6; k++, tiles += (rows + 2) * width, sums += TILES) {
        const float *restrict upper = tiles, *restrict here = tiles + width, *restrict lower = here + width;
        float *restrict a = sums, *restrict b = a + 6 * TILES, *restrict c = b + 6 * TILES, *restrict d = c + 6 * TILES;
        const float a0 = g[k][0], b0 = g[k][1], c0 = g[k][2], d0 = g[k][3];
        const float a1 = g[k][4], b1 = g[k][5], c1 = g[k][6], d1 = g[k][7];
        const float a2 = g[k][8], b2 = g[k][9], c2 = g[k][10], d2 = g[k][11];
        for (int x = 0; x < length; x++) {
            a[x] = a2 * lower[x] + (a1 * here[x] + (a0 * upper[x] + a[x]));
            b[x] = b2 * lower[x] + (b1 * here[x] + (b0 * upper[x] + b[x]));
            c[x] = c2 * lower[x] + (c1 * here[x] + (c0 * upper[x] + c[x]));
            d[x] = d2 * lower[x] + (d1 * here[x] + (d0 * upper[x] + d[x]));
        }
    }
}

static void transform_output(const float *restrict m, int width, float *restrict line)
{
    for (int x = 0; x < width; x++) {
        const float sum = m[TILES + x] + m[2 * TILES + x], apart = m[TILES + x] - m[2 * TILES + x];
        const float far_sum = m[3 * TILES + x] + m[4 * TILES + x], far_apart = m[3 * TILES + x] - m[4 * TILES + x];
        line[4 * x] = m[x] + sum + far_sum;
        line[4 * x + 1] = apart + 2 * far_apart;
        line[4 * x + 2] = sum + 4 * far_sum;
        line[4 * x + 3] = apart + 8 * far_apart + m[5 * TILES + x];
    }
}

static void convolve_tiles(const c5_layer *layer, const float *const *inputs, float *out, float *scratch)
{
    float line[N], g[6][12];
    float *const sums = scratch, *const tiles = scratch + SUMS; /* [outputs][6][TILES]; [CHUNK][6][rows + 2][width] */
    const int n = layer->n, width = n / 4, most = TILES / width;
    int all = 0;
    for (int k = 0; k < layer->tensors; k++)
        all += layer->channels[k];
    for (int top = 0; top < n; top += most) {
        const int rows = n - top < most ? n - top : most, size = 6 * (rows + 2) * width;
        int tensor = 0, channel = 0;
        zero(sums, (layer->outputs + 3) / 4 * 4 * 6 * TILES);
        for (int first = 0; first < all; first += CHUNK) {
            const int count = all - first < CHUNK ? all - first : CHUNK;
            for (int i = 0; i < count; i++) {
                transform_input(inputs[tensor] + channel * PLANE(n), n, top, rows, tiles + i * size);
                if (++channel == layer->channels[tensor]) {
                    channel = 0;
                    tensor++;
                }
            }
            for (int o = 0; o < layer->outputs; o += 4)
                for (int i = 0; i < count; i++) {
                    transform_weights(layer->weights + 36 * (o / 4 * all + first + i), g);
                    add_tiles(sums + o * 6 * TILES, tiles + i * size, g, width, rows);
                }
        }
        for (int o = 0; o < layer->outputs; o++)
            for (int y = 0; y < rows; y++) {
                transform_output(sums + o * 6 * TILES + y * width, width, line);
                finish(layer, o, top + y, line, out + o * PLANE(n) + AT(n, top + y, 0));
            }
    }
}

/* A convolution of several inputs side by side. */
static void convolve(const c5_layer *layer, const float *const *inputs, float *out, float *scratch)
{
    if (layer->side == 3 && layer->n >= 8)
        convolve_tiles(layer, inputs, out, scratch);
    else
        convolve_small(layer, inputs, out);
    for (int o = 0; o < layer->outputs; o++)
        clear_edges(out + o * PLANE(layer->n), layer->n);
}

static void pool(int channels, int n, const float *in, float *out) /* the largest of each 2x2, to n x n */
{
    for (int c = 0; c < channels; c++, in += PLANE(2 * n), out += PLANE(n)) {
        for (int y = 0; y < n; y++)
            for (int x = 0; x < n; x++) {
                const float *upper = in + AT(2 * n, 2 * y, 2 * x), *lower = upper + ROW(2 * n);
                const float a = upper[0] > upper[1] ? upper[0] : upper[1], b = lower[0] > lower[1] ? lower[0] : lower[1];
                out[AT(n, y, x)] = a > b ? a : b;
            }
        clear_edges(out, n);
    }
}

/* Twofold and bilinear, corners on corners: number 2k of a line lies k / (2n - 1) before number k of the old one, and
 * number 2k + 1 half of the rest behind it. */
static void upsample_row(int n, const float *restrict in, float *restrict out)
{
    const float step = 1.0f / (float)(2 * n - 1);
    for (int k = 0; k < n; k++) {
        const float before = (float)k * step, behind = 0.5f - ((float)k + 0.5f) * step;
        out[2 * k] = before * in[k - 1] + (1 - before) * in[k];
        out[2 * k + 1] = (1 - behind) * in[k] + behind * in[k + 1];
    }
}

static void upsample(int channels, int n, const float *in, float *out) /* from n x n */
{
    float lines[3][2 * N]; /* three old rows, as wide as the new ones */
    const float step = 1.0f / (float)(2 * n - 1);
    for (int c = 0; c < channels; c++, in += PLANE(n), out += PLANE(2 * n)) {
        float *above = lines[0], *here = lines[1], *below = lines[2];
        upsample_row(n, in + AT(n, -1, 0), above);
        upsample_row(n, in + AT(n, 0, 0), here);
        for (int k = 0; k < n; k++) {
            const float before = (float)k * step, behind = 0.5f - ((float)k + 0.5f) * step;
            float *even = out + AT(2 * n, 2 * k, 0), *odd = even + ROW(2 * n);
            upsample_row(n, in + AT(n, k + 1, 0), below);
            for (int x = 0; x < 2 * n; x++) {
                even[x] = before * above[x] + (1 - before) * here[x];
                odd[x] = (1 - behind) * here[x] + behind * below[x];
            }
            float *const free = above;
            above = here;
            here = below;
            below = free;
        }
        clear_edges(out, 2 * n);
    }
}

/* Each channel to mean 0 and variance 1, then rectified. In place. */
static void normalise(int channels, int n, float epsilon, float slope, float *maps)
{
    for (int c = 0; c < channels; c++, maps += PLANE(n)) {
        float mean = 0, variance = 0;
        for (int y = 0; y < n; y++) {
            float sum = 0;
            for (int x = 0; x < n; x++)
                sum += maps[AT(n, y, x)];
            mean += sum / (float)(n * n);
        }
        for (int y = 0; y < n; y++) {
            float sum = 0;
            for (int x = 0; x < n; x++)
                sum += (maps[AT(n, y, x)] - mean) * (maps[AT(n, y, x)] - mean);
            variance += sum / (float)(n * n);
        }
        const float factor = 1 / sqrtf(variance + epsilon);
        for (int y = 0; y < n; y++)
            for (int x = 0; x < n; x++)
                maps[AT(n, y, x)] = rectify((maps[AT(n, y, x)] - mean) * factor, slope);
    }
}

void c5_emit(c5_workspace *work)
{
    float *const t = work->numbers;
$calls}

/* ---------------------------------------------------------------- light */

static float at_bin(int i) /* u of a column, v of a row */
{
    return ((float)i - (N - 1) / 2.0f) * STEP;
}

/* The searched histograms convolved with the filters, whose origin is bin (N/2, N/2), times gain, plus bias: row by row
 * of a filter, four bins of a histogram at a time. Most bins are empty, and cost nothing. */
static void score(const float *searched, const float *maps, float *scores)
{
    float line[3 * N]; /* a row of a filter, with zeros on both sides */
    zero(line, 3 * N);
    zero(scores, N * N);
    for (int channel = 0; channel < C5_SEEN; channel++)
        for (int k = 0; k < N; k++) {
            for (int x = 0; x < N; x++)
                line[N + x] = maps[channel * PLANE(N) + AT(N, k, x)];
            for (int y = k > N / 2 ? k - N / 2 : 0; y < N && y < k + N / 2; y++) {
                const float *mass = searched + (channel * N + y - k + N / 2) * N;
                float *restrict row = scores + y * N;
                for (int j = 0; j < N; j += 4) {
                    const float a = mass[j], b = mass[j + 1], c = mass[j + 2], d = mass[j + 3];
                    const float *filter = line + N + N / 2 - j;
                    if (a + b + c + d > 0)
                        for (int x = 0; x < N; x++)
                            row[x] += a * filter[x] + b * filter[x - 1] + c * filter[x - 2] + d * filter[x - 3];
                }
            }
        }
    for (int y = 0; y < N; y++)
        for (int x = 0; x < N; x++) {
            const int place = AT(N, y, x);
$gained            scores[y * N + x] += maps[C5_SEEN * PLANE(N) + place];
        }
}

void c5_locate(c5_workspace *work, c5_estimate *estimate)
{
    float *const scores = work->numbers + SCORES;
    float red[N]; /* of the light at a column, if green is 1; blue at a row is the same */
    score(work->numbers + SEARCHED, work->numbers + MAPS, scores);
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
    return work->numbers[HISTOGRAMS + channel * PLANE(N) + AT(N, v, u)];
}

float c5_searched(const c5_workspace *work, int channel, int v, int u)
{
    return work->numbers[SEARCHED + (channel * N + v) * N + u];
}

float c5_map(const c5_workspace *work, int map, int v, int u)
{
    return work->numbers[MAPS + map * PLANE(N) + AT(N, v, u)];
}
