/* White balance: the light of a frame, from its zones or its pixels.
 *
 * $about
 *
 * It estimates one frame; smooth the gains from frame to frame yourself, weighed by the uncertainty.
 *
 * C99. It needs the mathematical library and nothing else: no heap, no files, no static variables that change. All its
 * working memory is in a c5_workspace; every thread may have its own.
 */
#ifndef C5_AWB_H
#define C5_AWB_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define C5_BINS $bins          /* bins of a histogram along u, and along v */
#define C5_SEEN $channels           /* histograms of a frame: pixels by powers of their brightness, then gradients */
#define C5_MAPS $maps           /* filters for each of them, a bias$and_gain */
#define C5_WORKSPACE $workspace /* floats */

#define C5_MOST_PIXELS 98304 /* average larger frames to this many pixels first */

typedef struct {
    float numbers[C5_WORKSPACE];
} c5_workspace;

typedef struct {
    float illuminant[3]; /* unit RGB: the camera's response to white */
    float gains[3];      /* white balance multipliers, green = 1 */
    float uncertainty;   /* degrees: the mean angle between the light and those of the heat map */
    float bound;         /* degrees: the error on nine in ten frames of a new camera is smaller */
} c5_estimate;

typedef enum {
    C5_OK,
    C5_NOTHING_COUNTS, /* all zones or pixels are black, saturated or ignored */
    C5_OUT_OF_RANGE,   /* colors count, but none is in the histogram: a channel is dead, or the black level wrong */
    C5_BAD_SIZE,       /* no rows, no columns, or more than C5_MOST_PIXELS */
    C5_BAD_NUMBER      /* NaN, or a number above 1, where it counts */
} c5_state;

/* The light of a frame. `rgb` has three numbers for each of rows x columns zones or pixels: linear camera RGB from 0 to
 * 1, black level subtracted; a zone has the mean of its pixels that are neither saturated nor dead. `ignore` has a byte
 * for each, not 0 if it must not count: if a zone is saturated, or if less than half of its pixels are in the mean. It
 * is NULL if all may count. A color with a channel at 1 never counts, and neither does black. Unless the state is
 * C5_OK, the estimate is unchanged. */
c5_state c5_estimate_frame(
    c5_workspace *work, const float *rgb, const uint8_t *ignore, int rows, int columns, c5_estimate *estimate);

/* The same in three steps, to inspect what is between them. */
c5_state c5_count(c5_workspace *work, const float *rgb, const uint8_t *ignore, int rows, int columns);
void c5_emit(c5_workspace *work);
void c5_locate(c5_workspace *work, c5_estimate *estimate);

/* After c5_count: what the network sees of a frame at a bin, and where the light is searched for. After c5_emit: a map. */
float c5_seen(const c5_workspace *work, int channel, int v, int u);
float c5_searched(const c5_workspace *work, int channel, int v, int u);
float c5_map(const c5_workspace *work, int map, int v, int u);

#ifdef __cplusplus
}
#endif

#endif
