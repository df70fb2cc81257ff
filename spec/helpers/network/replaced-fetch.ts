// Replaces the global `fetch`, for addresses that a spec cannot listen on.

import type { Suite } from '../suite.ts';

type Answer = (url: unknown, init?: RequestInit) => Promise<Response>;

/** A function that replaces `fetch` until the end of the test. */
export function fetchFor(test: Suite): (answer: Answer) => void {
  const original = globalThis.fetch;
  test.after.each(() => {
    globalThis.fetch = original;
  });
  return (answer) => {
    globalThis.fetch = answer as typeof fetch;
  };
}
