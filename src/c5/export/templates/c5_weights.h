/* The layers of the network: their shapes, and where their weights are. */
#ifndef C5_WEIGHTS_H
#define C5_WEIGHTS_H

#include <stdint.h>

typedef $weight_type c5_weight;

typedef struct {
    int n;           /* the output is n x n */
    int side;        /* of the window: 3 or 1 */
    int outputs;     /* channels */
    int inputs;      /* channels of all tensors, each filled up to eights */
    int tensors;     /* side by side, */
    int channels[$tensors]; /* and the channels of each */
    float slope;     /* of the rectifier: what is below zero is multiplied by it */
    const c5_weight *weights; /* [outputs / 8][inputs][rows][columns][8], padded with zeros */
$fields} c5_layer;

extern const c5_layer c5_layers[]; /* $layers, in the order in which c5_emit runs them */
$declared
#endif
