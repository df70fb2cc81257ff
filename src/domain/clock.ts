// The clock, passed to all code that measures time or waits; a spec passes its own.

export interface Clock {
  /** Monotonic, in ms. */
  readonly now: () => number;
  /** Rings once after this many ms, unless the returned function was called before. */
  readonly alarm: (waitMs: number, ring: () => void) => () => void;
}
