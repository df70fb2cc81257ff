// Time, as it is given to whoever measures it or waits: a spec gives its own.

export interface Clock {
  /** Monotonic, in ms. */
  readonly now: () => number;
  /** Rings once after so many ms, unless the returned function was called before. */
  readonly alarm: (waitMs: number, ring: () => void) => () => void;
}
