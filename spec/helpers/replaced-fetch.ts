// Answers of the global `fetch` that come from a spec, for addresses that a spec cannot listen on.

import type { Suite } from './suite.ts';

type Answer = (url: unknown, init?: RequestInit) => Promise<Response>;

/** Replaces `fetch` until the test has ended, as often as it is called. */
export function fetchFor(test: Suite): (answer: Answer) => void {
  const original = globalThis.fetch;
  test.after.each(() => {
    globalThis.fetch = original;
  });
  return (answer) => {
    globalThis.fetch = answer as typeof fetch;
  };
}
