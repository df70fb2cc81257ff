// A list of several templates as one server, and what is incomplete in it.

import type { JsonObject, JsonText } from '../../domain/json/json.ts';
import type { GatheredList } from './lists.ts';

export interface AggregateList {
  readonly items: readonly JsonObject[];
  /** Templates whose items are missing because they did not answer. `reason`: a sentence for clients. */
  readonly missing: readonly { readonly template: string; readonly reason: string }[];
  /** Templates whose items are those of their last list. */
  readonly stale: readonly { readonly template: string; readonly age_seconds: number }[];
  /** Templates whose list ends before its last page. `reason`: a sentence for clients. */
  readonly truncated: readonly { readonly template: string; readonly reason: string }[];
  /** The result with these items and nothing else, if it is kept. */
  readonly result?: (() => JsonText) | undefined;
}

export function listingOf(
  items: readonly JsonObject[],
  gathered: readonly GatheredList[],
  result?: () => JsonText,
): AggregateList {
  return {
    items,
    missing: gathered.flatMap(({ template, missing }) =>
      missing === undefined ? [] : { template, reason: missing },
    ),
    stale: gathered.flatMap(({ template, staleMs }) =>
      staleMs === undefined ? [] : { template, age_seconds: Math.round(staleMs / 1_000) },
    ),
    truncated: gathered.flatMap(({ template, cut }) =>
      cut === undefined ? [] : { template, reason: `The list ends early: ${cut}.` },
    ),
    result,
  };
}
