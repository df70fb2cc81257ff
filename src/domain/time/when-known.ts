// A value that may be known at once.

/** Applies a function to a value at once, or to that of a promise later: no promise is created on the hot path. */
export function whenKnown<T, R>(value: T | Promise<T>, apply: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(apply) : apply(value);
}
