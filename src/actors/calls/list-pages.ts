// Gathers all pages of one list from one backend. Bounded, because the cursor of a faulty backend may never end.

import { backendUnavailable } from '../../domain/error-catalogue.ts';
import type { ExchangeRequest } from '../../domain/exchange.ts';
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { LIST_METHODS, type ListField } from '../../domain/mcp.ts';

/**
 * Asks `ask` for page after page and returns the items in order. `ask` resolves with the result of one page, or with
 * undefined when the backend does not offer the list: then the list is empty. Rejects with BACKEND_UNAVAILABLE when a
 * cursor repeats or the bounds of LIMITS are passed.
 */
export async function gatherPages(
  field: ListField,
  ask: (request: ExchangeRequest) => Promise<unknown>,
): Promise<JsonObject[]> {
  const method = LIST_METHODS[field];
  const items: JsonObject[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (let page = 0; page < LIMITS.listPages; page += 1) {
    const result = await ask(cursor === undefined ? { method } : { method, params: { cursor } });
    if (!isJsonObject(result)) return items;
    const found = result[field];
    if (Array.isArray(found)) for (const item of found) if (isJsonObject(item)) items.push(item);
    const next = result.nextCursor;
    if (typeof next !== 'string') return items;
    if (seen.has(next)) throw endless(method, 'its cursor repeats');
    if (items.length > LIMITS.listItems) throw endless(method, `more than ${LIMITS.listItems} items`);
    seen.add(next);
    cursor = next;
  }
  throw endless(method, `more than ${LIMITS.listPages} pages`);
}

function endless(method: string, reason: string) {
  return backendUnavailable(`${method} does not end: ${reason}`, { delivered: 'unknown', suspicious: true });
}
