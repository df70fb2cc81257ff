// Values that are loaded when they are first needed, and then kept.

/**
 * A function that loads once and then gives the same value. After a failure it loads again: a process that had no
 * free file descriptor gets one later.
 */
export function loadOnce<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    loading ??= load().catch((thrown: unknown) => {
      loading = undefined;
      throw thrown;
    });
    return loading;
  };
}
