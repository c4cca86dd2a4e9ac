/* Included in the middle of quickjs.c: the shortest decimal of most numbers that people write, a
   few digits after the point, without the engine's arithmetic of many words. */

enum { QUICK_DECIMALS = 15 };

/* Writes a positive integer and returns its end. */
static char *put_digits(char *out, uint64_t value)
{
    char digits[20];
    int count = 0;

    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (count)
        *out++ = digits[--count];
    return out;
}

/* Writes `number` as JavaScript does and returns its length, or 0 when it takes the long way.

   When the number, scaled by a power of ten, is an integer of at most 15 digits that divides back
   to it, then that decimal reads as this number: both are exact in a double, and division rounds
   correctly. No other decimal of at most 15 digits does, so it is the shortest. */
static int quick_dtoa(char *out, double number)
{
    static const double powers[QUICK_DECIMALS + 1] = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    };
    double size = fabs(number), scaled;
    uint64_t digits, power;
    char *at = out;
    int places, i;

    if (!(size >= 1e-6 && size < 1e15))
        return 0;
    for (places = 0;; places++) {
        if (places > QUICK_DECIMALS || (scaled = size * powers[places]) >= 1e15)
            return 0;
        if (scaled == (double)(uint64_t)scaled && scaled / powers[places] == size)
            break;
    }
    digits = (uint64_t)scaled;
    for (; places && digits % 10 == 0; places--) /* the product with a smaller power was rounded */
        digits /= 10;
    power = (uint64_t)powers[places];
    if (number < 0)
        *at++ = '-';
    at = put_digits(at, digits / power);
    if (places) {
        *at++ = '.';
        for (i = places, digits %= power; i--; digits /= 10)
            at[i] = (char)('0' + digits % 10);
        at += places;
    }
    return (int)(at - out);
}
