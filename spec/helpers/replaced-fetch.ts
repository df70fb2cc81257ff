// Answers of the global `fetch` that come from a spec, for addresses that a spec cannot listen on.

export type Answer = (url: unknown, init?: RequestInit) => Promise<Response>;

/** Replaces `fetch` until the returned function is called. */
export function replacedFetch(answer: Answer): () => void {
  const original = globalThis.fetch;
  globalThis.fetch = answer as typeof fetch;
  return () => {
    globalThis.fetch = original;
  };
}
