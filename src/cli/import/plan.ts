// What an import would change at a gateway: the template of each server, and whether it is new, changed or as it was. It changes nothing.

import { isDeepStrictEqual } from 'node:util';
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { hasSecret, isVariable } from '../../templates/client-config.ts';
import { freeId, type ImportedServer, identityOf } from '../../templates/imported-server.ts';
import { type Fields, fields, itemsOf, listOf } from '../answers.ts';
import type { Remote } from '../remote.ts';
import { isMarkOf } from './placeholders.ts';

export interface PlannedImport {
  readonly server: ImportedServer;
  readonly template: string;
  readonly state: 'new' | 'changed' | 'unchanged';
}

/** `gateway` undefined: nothing is known to be there. Throws CommandFailure. */
export async function planImport(
  servers: readonly ImportedServer[],
  gateway: Remote | undefined,
): Promise<PlannedImport[]> {
  const { details } = fields(await gateway?.request('/gateway/templates?include_details=true'));
  const records = new Map(listOf(details).map((record) => [String(record.id), record]));
  const templates = fields(fields(await gateway?.request('/gateway/registry')).templates);
  const taken = new Set<string>();
  const planned: PlannedImport[] = [];
  for (const server of servers) {
    const stored = new Map<string, JsonObject>();
    const sameIds: string[] = [];
    for (const [id, record] of records)
      if (id === server.id || id.startsWith(`${server.id}-`)) {
        const definition = await storedDefinition(gateway, id, record);
        if (definition === undefined || !isSame(definition, server)) continue;
        stored.set(id, definition);
        sameIds.push(id);
      }
    const own = sameIds.find((id) => !taken.has(id));
    const template = own ?? freeId(server.id, (id) => records.has(id) || taken.has(id));
    taken.add(template);
    const before = own === undefined ? undefined : stored.get(own);
    planned.push({ server, template, state: stateOf(server, template, before, fields(templates[template])) });
  }
  return planned;
}

async function storedDefinition(
  gateway: Remote | undefined,
  id: string,
  { is_stored: isStored, tags }: Fields,
): Promise<JsonObject | undefined> {
  if (isStored !== true || !itemsOf(tags).includes('imported')) return undefined;
  const answer = await gateway?.request(`/gateway/templates/${encodeURIComponent(id)}/definition`);
  return isJsonObject(answer) ? answer : undefined;
}

function isSame(stored: JsonObject, { definition }: ImportedServer): boolean {
  return stored.name === definition.name && identityOf(stored) === identityOf(definition);
}

function stateOf(
  { definition, instance }: ImportedServer,
  template: string,
  before: JsonObject | undefined,
  { instances }: Fields,
): PlannedImport['state'] {
  if (before === undefined) return 'new';
  if (!isDeepStrictEqual(before, { id: template, ...definition })) return 'changed';
  if (instance === undefined) return 'unchanged';
  const own = listOf(instances).find(({ id }) => id === instanceIdOf(template));
  return isMarkOf(fields(own?.metadata).imported, instance) ? 'unchanged' : 'changed';
}

export function instanceIdOf(template: string): string {
  return `${template}-1`;
}

/** The command or the address, as it may be shown: without secrets. */
export function placeOf({ definition, instance }: ImportedServer): string {
  const { command, args, endpoint } = instance ?? definition;
  if (typeof command === 'string') {
    const words = itemsOf(args).map(String);
    const shown = words.map((word, index) =>
      isVariable(word, words[index - 1]) && !/\$\{/.test(word)
        ? word.replace(/^(--?[\w-]+=)?.*$/s, '$1***')
        : word,
    );
    return [command, ...shown]
      .map((word) => (/[\s"']|^$/.test(word) ? JSON.stringify(word) : word))
      .join(' ');
  }
  const address = String(endpoint ?? '');
  if (!hasSecret(address)) return address;
  const { origin, pathname } = new URL(address);
  return `${origin}${pathname}?***`;
}
