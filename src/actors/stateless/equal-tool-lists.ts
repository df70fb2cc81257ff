// Remembers which backends list the same tools to clients of certain capabilities as in the shared process. Most do: then a list
// needs no dedicated process until the shared one is restarted. Source: ADR 49.

import type { ClientProfile } from '../../domain/client.ts';
import type { ExchangeEvent } from '../../domain/exchange.ts';
import { canonicalText, isJsonObject } from '../../domain/json.ts';
import type { Peer } from '../../domain/mcp.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';

/** Most sets of capabilities that are remembered per backend. */
const MOST_CAPABILITIES = 64;

export class EqualToolLists {
  readonly #capabilities = new WeakMap<Peer, Set<string>>();

  has({ peer }: Pick<InstanceRef, 'peer'>, { capabilities }: ClientProfile): boolean {
    const known = peer ? this.#capabilities.get(peer) : undefined;
    return known?.has(canonicalText(capabilities)) === true;
  }

  /** `event`: the backend's answer to the tool list request of such a client. */
  learn(
    { peer, tools }: Pick<InstanceRef, 'peer' | 'tools'>,
    { capabilities }: ClientProfile,
    event: ExchangeEvent,
  ): void {
    if (!peer || event.kind !== 'result') return;
    const names = allToolsOf(event.result.value);
    if (names === undefined || tools?.listsOnly(names) !== true) return;
    const known = this.#capabilities.get(peer) ?? new Set();
    if (known.size < MOST_CAPABILITIES) this.#capabilities.set(peer, known.add(canonicalText(capabilities)));
  }
}

/** The names of the tools in a list that has no further page. */
function allToolsOf(result: unknown): readonly string[] | undefined {
  if (!isJsonObject(result) || !Array.isArray(result.tools) || result.nextCursor !== undefined)
    return undefined;
  return result.tools.map((tool: unknown) => (isJsonObject(tool) ? String(tool.name) : ''));
}
