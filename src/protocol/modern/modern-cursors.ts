// Cursors of lists mean something only to the instance that gave them. The client gets them sealed together with that
// instance, and its next request goes there. Source: MCP 2026-07-28 server/utilities/pagination (cursors are opaque).

import { asBuffer, isJsonObject, JsonText } from '../../domain/json.ts';
import { isTooLong } from '../client-bounds.ts';
import { listOf } from '../lists/list-methods.ts';
import { invalidParams, type ModernCall, pathKey, type Routed } from './modern-call.ts';
import type { Sealer } from './sealed-state.ts';

const QUOTED = '"nextCursor"';

/** Seals cursors and opens them again. */
export class ModernCursors {
  readonly #sealer: Sealer;

  constructor(sealer: Sealer) {
    this.#sealer = sealer;
  }

  /**
   * The request with the instance's own cursor; undefined for one without. Throws RpcFailure (-32602) for a cursor that
   * was not given out here, to this client, for this list, within the hour. An empty one is a cursor like any other.
   */
  route(call: ModernCall): Routed | undefined {
    const { cursor } = call.params;
    if (cursor === undefined || listOf(call.method) === undefined) return undefined;
    const opened = typeof cursor === 'string' ? this.#sealer.open(cursor, boundOf(call)) : undefined;
    if (typeof opened?.i !== 'string' || typeof opened.c !== 'string') {
      throw invalidParams('Invalid or expired cursor', { reason: 'invalid_cursor' });
    }
    return { params: { ...call.params, cursor: opened.c }, instanceId: opened.i };
  }

  /** The result with its cursor sealed; the same one when it has none. A cursor that is too long is left out. */
  seal(call: ModernCall, result: JsonText, instanceId: string): JsonText {
    if (listOf(call.method) === undefined || !asBuffer(result.bytes).includes(QUOTED)) return result;
    const value = result.exactValue;
    if (!isJsonObject(value) || typeof value.nextCursor !== 'string') return result;
    const { nextCursor, ...rest } = value;
    const sealed = this.#sealer.seal({ i: instanceId, c: nextCursor }, boundOf(call));
    const isKept = sealed !== undefined && !isTooLong(sealed);
    return JsonText.ofValue(isKept ? { ...rest, nextCursor: sealed } : rest);
  }
}

function boundOf(call: ModernCall): string {
  return pathKey(`cursor of ${call.method}`, call);
}
