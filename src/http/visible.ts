// What of the registry a principal may see. A template that is not theirs does not exist for them, nor do its instances.
// Source: decisions, "Templates a principal may use".

import { mayUse, type Principal } from '../domain/account.ts';
import { LIMITS } from '../domain/limits.ts';
import { serverNotFound, templateNotFound } from '../domain/registry-errors.ts';
import type { Gateway } from '../gateway.ts';
import type { Server } from '../gateway-types.ts';

/** Names of their templates, sorted. */
export function visibleTemplates(gateway: Pick<Gateway, 'templates'>, principal: Principal): string[] {
  return gateway.templates().filter((template) => mayUse(principal, template));
}

/** The instances of their templates. */
export function visibleServers(gateway: Pick<Gateway, 'servers'>, principal: Principal): Server[] {
  return gateway.servers().filter(({ definition }) => mayUse(principal, definition.template));
}

/** One instance by its server id; SERVER_NOT_FOUND also when it is not theirs. */
export function visibleServer(gateway: Pick<Gateway, 'server'>, principal: Principal, id: string): Server {
  const shownId = id.slice(0, LIMITS.locCharacters);
  if (shownId !== id) throw serverNotFound(shownId);
  const server = gateway.server(id);
  if (!mayUse(principal, server.definition.template)) throw serverNotFound(id);
  return server;
}

/** TEMPLATE_NOT_FOUND for a template in a body that is not theirs. Those in paths are checked by middleware/admit.ts. */
export function requireTemplate(principal: Principal, template: string): void {
  if (!mayUse(principal, template)) throw templateNotFound(template);
}
