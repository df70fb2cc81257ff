// Functions of other code that are called where an error of theirs would do harm.

/** The function, without what it throws or its promise rejects with. Default: one that does nothing. */
export function droppingErrors<Args extends readonly unknown[]>(
  listener: (...args: Args) => unknown = () => {},
): (...args: Args) => void {
  return (...args) => {
    try {
      const returned = listener(...args);
      if (returned !== undefined) Promise.resolve(returned).catch(() => undefined);
    } catch {
      // Dropped.
    }
  };
}
