// Timestamps as people write them: a date, a time and an offset; without the offset the instant is unknown.

const FORM = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)([Zz]|[+-]\d\d:?\d\d)$/;

/** RFC 3339 or ISO 8601 with `Z` or an offset, as ms since 1970; NaN for everything else, also for the 30th of February. */
export function timestampOf(text: string): number {
  const [, day = '', time = '', offset = ''] = FORM.exec(text) ?? [];
  const zone = offset.length === 5 ? `${offset.slice(0, 3)}:${offset.slice(3)}` : offset.toUpperCase();
  // Date.parse takes the 30th of February for a day in March.
  const midnight = new Date(`${day}T00:00:00Z`);
  const isDay = !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day);
  return isDay ? Date.parse(`${day}T${time}${zone}`) : Number.NaN;
}
