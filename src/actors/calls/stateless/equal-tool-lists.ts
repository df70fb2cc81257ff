// Remembers for which backends a dedicated process lists the same tools as the shared process, by the capabilities of
// the client. Most backends do; a list then needs no dedicated process until the shared one is restarted. StatelessRoute
// uses it. Source: ADR 26.

import type { ExchangeEvent } from '../../../domain/calls/exchange-event.ts';
import { parsedResult } from '../../../domain/calls/parsed-result.ts';
import { isJsonObject } from '../../../domain/json/json.ts';
import type { ClientProfile } from '../../../domain/mcp/client.ts';
import type { Handshake } from '../../../domain/mcp/mcp.ts';
import { capabilitiesKey } from '../../instances/dedicated-conversations.ts';
import type { InstanceRef } from '../../instances/instance-ref.ts';

/** The largest list that is compared, in bytes. */
const MAX_LIST_BYTES = 1024 * 1024;
/** The most sets of capabilities that are remembered per backend. */
const MAX_CAPABILITIES = 64;

/** The memory of backends that list the same tools to certain clients as in the shared process. */
export class EqualToolLists {
  readonly #capabilities = new WeakMap<Handshake, Set<string>>();

  has({ handshake }: InstanceRef, profile: ClientProfile): boolean {
    const known = handshake ? this.#capabilities.get(handshake) : undefined;
    return known?.has(capabilitiesKey(profile)) === true;
  }

  /**
   * Compares and remembers a list. `event`: the answer of a dedicated conversation to `tools/list` of a client with
   * `profile`.
   */
  learn({ handshake, tools }: InstanceRef, profile: ClientProfile, event: ExchangeEvent): void {
    if (!handshake || event.kind !== 'result' || event.result.bytes.length > MAX_LIST_BYTES) return;
    const names = allToolsOf(parsedResult(event.result));
    if (names === undefined || tools?.listsOnly(names) !== true) return;
    const known = this.#capabilities.get(handshake) ?? new Set();
    if (known.size < MAX_CAPABILITIES) this.#capabilities.set(handshake, known.add(capabilitiesKey(profile)));
  }
}

/** The names of the tools in a list; undefined when the list has a further page. */
function allToolsOf(result: unknown): readonly string[] | undefined {
  if (!isJsonObject(result) || !Array.isArray(result.tools) || result.nextCursor !== undefined)
    return undefined;
  return result.tools.map((tool: unknown) =>
    isJsonObject(tool) && typeof tool.name === 'string' ? tool.name : '',
  );
}
