// Two templates as one server, whose lists and resources a spec sets.

import { firstValueFrom } from 'rxjs';
import type { ExchangeRequest } from '../../../src/domain/calls/exchange.ts';
import { templateNotFound } from '../../../src/domain/errors/registry-errors.ts';
import type { Owner } from '../../../src/domain/mcp/client.ts';
import type { AllSessions } from '../../../src/domain/sessions/all-sessions.ts';
import type { McpSession } from '../../../src/domain/sessions/mcp-session.ts';
import { becomes } from '../../helpers/eventually.ts';
import { ADA, ListingBackends, NO_SESSIONS, PROFILE } from '../listing-backends.ts';
import { aggregateOf } from './aggregate-of.ts';

/** The resources of each open subscription. */
export const wantedUris = ({ wanted }: ListingBackends) => wanted.map(({ resources }) => [...resources]);

/** Waits for these subscriptions; simulated timers do not advance. */
export function untilWanted(backends: ListingBackends, uris: readonly string[][]): Promise<void> {
  return becomes(() => wantedUris(backends), uris);
}

export function twoTemplates() {
  const a = new ListingBackends({ tools: [{ name: 'x' }], resources: [{ uri: 'a:1' }] });
  const b = new ListingBackends({ tools: [{ name: 'x' }] });
  a.handshake = { ...a.handshake, capabilities: { tools: {}, resources: {}, logging: {} } };
  b.handshake = { ...b.handshake, capabilities: { tools: {}, prompts: {} } };
  const templates = ['a', 'b'];
  const open = new Map<string, McpSession>();
  const uses: string[] = [];
  const sessions: AllSessions = {
    ...NO_SESSIONS,
    add: (session) => open.set(session.id, session),
    findAny: (id) => open.get(id),
    used: (session) => uses.push(session.id),
    remove: ({ id }) => open.delete(id),
  };
  const backendsOf = (template: string) => {
    if (!templates.includes(template)) throw templateNotFound(template);
    return template === 'a' ? a : b;
  };
  let looks = 0;
  let fault: Error | undefined;
  const templatesOf = () => {
    looks += 1;
    if (fault !== undefined) throw fault;
    return templates;
  };
  const { aggregated, listChanges$, reported } = aggregateOf({
    templates: templatesOf,
    backendsOf,
    sessions,
  });
  const ask = async (request: ExchangeRequest, owner: Owner = ADA, instanceId?: string) => {
    const { event, ...from } = await firstValueFrom(
      aggregated.exchange(request, { owner, profile: PROFILE, instanceId }),
    );
    return { ...from, said: event.kind === 'result' ? event.result.value : event };
  };
  const fail = (thrown: Error | undefined) => {
    fault = thrown;
  };
  return { a, b, aggregated, ask, listChanges$, templates, uses, fail, looks: () => looks, reported };
}
