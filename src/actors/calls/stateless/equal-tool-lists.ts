// Remembers which backends list the same tools to clients of certain capabilities as in the process that clients
// share: most do, and then a list needs no dedicated process until the shared one is restarted. The route of a
// call without a session asks. Source: ADR 49.

import type { ExchangeEvent } from '../../../domain/calls/exchange-event.ts';
import { parsedResult } from '../../../domain/calls/parsed-result.ts';
import { isJsonObject } from '../../../domain/json/json.ts';
import type { ClientProfile } from '../../../domain/mcp/client.ts';
import type { Handshake } from '../../../domain/mcp/mcp.ts';
import type { InstanceRef } from '../../instances/instance-ref.ts';
import { capabilitiesKey } from '../../instances/leases.ts';

/** A longer list is not compared. */
const LARGEST_LIST_BYTES = 1024 * 1024;
/** Most sets of capabilities that are remembered per backend. */
const MAX_CAPABILITIES = 64;

/** Knows which backends list the same tools to certain clients as in the process that clients share. */
export class EqualToolLists {
  readonly #capabilities = new WeakMap<Handshake, Set<string>>();

  has({ handshake }: InstanceRef, profile: ClientProfile): boolean {
    const known = handshake ? this.#capabilities.get(handshake) : undefined;
    return known?.has(capabilitiesKey(profile)) === true;
  }

  /** `event`: the backend's answer to the tool list request of such a client. */
  learn({ handshake, tools }: InstanceRef, profile: ClientProfile, event: ExchangeEvent): void {
    if (!handshake || event.kind !== 'result' || event.result.bytes.length > LARGEST_LIST_BYTES) return;
    const names = allToolsOf(parsedResult(event.result));
    if (names === undefined || tools?.listsOnly(names) !== true) return;
    const known = this.#capabilities.get(handshake) ?? new Set();
    if (known.size < MAX_CAPABILITIES) this.#capabilities.set(handshake, known.add(capabilitiesKey(profile)));
  }
}

/** The names of the tools in a list that has no further page. */
function allToolsOf(result: unknown): readonly string[] | undefined {
  if (!isJsonObject(result) || !Array.isArray(result.tools) || result.nextCursor !== undefined)
    return undefined;
  return result.tools.map((tool: unknown) => (isJsonObject(tool) ? String(tool.name) : ''));
}
