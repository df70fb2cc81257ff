// One timer for one call. Every call sets one, so it is spared the cost of an Observable.

/** Rings once after so many ms, unless the returned function was called before. */
export function alarm(waitMs: number, ring: () => void): () => void {
  const timer = setTimeout(ring, waitMs);
  return () => clearTimeout(timer);
}
