// What is loaded when it is first needed, and then kept.

/** After a failure it is loaded again: a process that had no free file descriptor gets one later. */
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
