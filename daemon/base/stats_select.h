/* stats_select.h: quickselect (Hoare, "Find", 1961) for one type of number. Included by stats.c
 * once for each type, with SELECT_TYPE and SELECT_NAME defined; no include guard on purpose.
 *
 * select(v, n, k) reorders v until v[k] is what sorting would put there, everything before it is
 * no larger and everything behind it no smaller. Each round splits the part that holds k into
 * three: smaller than the pivot, equal, larger. So a flat curve, all values equal, is done in one
 * round, and the pivot (the middle of the part) makes sorted input, which sweeps give all the
 * time, the best case. About 3 n comparisons on average, n^2 / 2 at worst.
 *
 *     k = 2:   4 1 3 2 9   pivot 3   ->   2 1 | 3 | 9 4   ->   v[2] = 3
 */
static SELECT_TYPE SELECT_NAME(SELECT_TYPE *v, size_t n, size_t k)
{
    size_t first = 0, last = n - 1;

    for (;;) {
        const SELECT_TYPE pivot = v[first + (last - first) / 2];
        size_t equal = first, next = first, larger = last + 1;
        while (next < larger) {
            const SELECT_TYPE x = v[next];
            if (x < pivot) {
                v[next++] = v[equal];
                v[equal++] = x;
            } else if (x > pivot) {
                v[next] = v[--larger];
                v[larger] = x;
            } else {
                next++;
            }
        }
        if (k < equal)
            last = equal - 1;
        else if (k >= larger)
            first = larger;
        else
            return v[k];
    }
}
