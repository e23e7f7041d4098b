/* Runs the test vector: a frame, and what C5 in Python finds in it. The exit status is 0 if both agree.
 *
 *     c5_test FILE [REPEATS]   the light of each frame of a file, and the time of one
 *
 * A file holds frames one after the other: rows and columns as int32, rows x columns x 3 floats, rows x columns bytes
 * that are not 0 where a pixel must not count. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "c5_awb.h"
#include "c5_vector.h"

static c5_workspace work;

static double angle(const float a[3], const float b[3]) /* in degrees, exact for small ones too */
{
    double apart = 0, together = 0;
    for (int i = 0; i < 3; i++) {
        apart += (a[i] - b[i]) * (double)(a[i] - b[i]);
        together += (a[i] + b[i]) * (double)(a[i] + b[i]);
    }
    return 2 * atan2(sqrt(apart), sqrt(together)) * 57.29577951308232;
}

static int check(const char *what, double difference, double most)
{
    const int wrong = !(difference <= most);
    printf("%-12s %-6s %.2g apart, at most %.2g\n", what, wrong ? "WRONG" : "right", difference, most);
    return wrong;
}

typedef float look(const c5_workspace *, int, int, int);

static double largest(look *at, int maps, const float *expected)
{
    double most = 0;
    for (int c = 0; c < maps; c++)
        for (int v = 0; v < C5_BINS; v++)
            for (int u = 0; u < C5_BINS; u++) {
                const double difference = fabs((double)at(&work, c, v, u) - *expected++);
                most = difference <= most || isnan(most) ? most : difference;
            }
    return most;
}

#ifdef C5_TICKS /* of a clock that counts instructions */
unsigned long c5_ticks(void);
static void count_instructions(void)
{
    c5_estimate found;
    const unsigned long start = c5_ticks();
    c5_estimate_frame(&work, vector_rgb, vector_ignore, VECTOR_ROWS, VECTOR_COLUMNS, &found);
    printf("%.1f million instructions a frame\n", 40e-6 * (double)(c5_ticks() - start));
}
#endif

static int run_vector(void)
{
    c5_estimate found;
    int wrong = 0;
#ifdef C5_TICKS
    count_instructions();
#endif
    if (c5_count(&work, vector_rgb, vector_ignore, VECTOR_ROWS, VECTOR_COLUMNS) != C5_OK)
        return 1;
    wrong += check("seen", largest(c5_seen, C5_SEEN, vector_seen), 1e-4);
    wrong += check("searched", largest(c5_searched, C5_SEEN, vector_searched), 1e-4);
    c5_emit(&work);
    wrong += check("maps", largest(c5_map, C5_MAPS, vector_maps), VECTOR_MAPS_APART);
    c5_locate(&work, &found);
    wrong += check("light", angle(found.illuminant, vector_illuminant), VECTOR_DEGREES_APART);
    wrong += check("uncertainty", fabs(found.uncertainty - VECTOR_UNCERTAINTY), VECTOR_DEGREES_APART);
    printf("gains %.5f %.5f %.5f\n", found.gains[0], found.gains[1], found.gains[2]);
    const float nan_frame[3] = {NAN, 0.5f, 0.5f}, white_frame[3] = {1, 1, 1};
    wrong += c5_estimate_frame(&work, nan_frame, NULL, 1, 1, &found) != C5_BAD_NUMBER;
    wrong += c5_estimate_frame(&work, white_frame, NULL, 1, 1, &found) != C5_NOTHING_COUNTS;
    wrong += c5_estimate_frame(&work, white_frame, NULL, 0, 1, &found) != C5_BAD_SIZE;
    puts(wrong ? "FAILED" : "all right");
    return wrong > 0;
}

static int run_file(const char *path, int repeats)
{
    FILE *const file = fopen(path, "rb");
    int32_t size[2];
    double seconds = 0;
    long frames = 0;
    while (file && fread(size, sizeof size, 1, file) == 1) {
        const size_t pixels = (size_t)size[0] * (size_t)size[1];
        float *const rgb = malloc(pixels * 3 * sizeof *rgb); /* only this program needs a heap */
        uint8_t *const ignore = malloc(pixels);
        c5_estimate found = {{0}, {0}, 0, 0};
        if (!rgb || !ignore || fread(rgb, 12, pixels, file) != pixels || fread(ignore, 1, pixels, file) != pixels)
            return 1;
        c5_state state = C5_OK;
        for (int i = 0; i < repeats; i++) {
            const clock_t start = clock();
            state = c5_estimate_frame(&work, rgb, ignore, size[0], size[1], &found);
            const double taken = (double)(clock() - start) / CLOCKS_PER_SEC;
            seconds = frames + i == 0 || taken < seconds ? taken : seconds;
        }
        printf("%d %.7f %.7f %.7f %.5f\n", state, found.illuminant[0], found.illuminant[1], found.illuminant[2],
            found.uncertainty);
        free(rgb);
        free(ignore);
        frames++;
    }
    if (file)
        fclose(file);
    fprintf(stderr, "%ld frames, the fastest in %.3f ms\n", frames, 1e3 * seconds);
    return frames == 0;
}

int main(int count, char **arguments)
{
    return count > 1 ? run_file(arguments[1], count > 2 ? atoi(arguments[2]) : 1) : run_vector();
}
