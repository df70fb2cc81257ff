// The plan of an import: the template of each server, and whether it is new, changed or the same at the gateway. A plan
// changes nothing.

import { isDeepStrictEqual } from 'node:util';
import { isJsonObject, type JsonObject } from '../../domain/json/json.ts';
import { freeId, type ImportedServer, identityOf } from '../../templates/imported-server.ts';
import { shownAddress, withoutSecretWord } from '../../templates/secret-words.ts';
import { elementsOf, type Fields, fields, objectsOf } from '../remote/answers.ts';
import type { Remote } from '../remote/remote.ts';
import { isDigestOf } from './placeholders.ts';

export interface PlannedImport {
  readonly server: ImportedServer;
  readonly template: string;
  readonly state: 'new' | 'changed' | 'unchanged';
  /** True when the folder of templates defines the same server, so that only the instance is registered. */
  readonly isFiled?: boolean;
}

/** The plan of an import. Without `gateway` nothing is known of its templates. Throws CommandFailure. */
export async function planImport(
  servers: readonly ImportedServer[],
  gateway: Remote | undefined,
): Promise<PlannedImport[]> {
  const { details } = fields(await gateway?.request('/gateway/templates?include_details=true'));
  const records = new Map(objectsOf(details).map((record) => [String(record.id), record]));
  const templates = fields(fields(await gateway?.request('/gateway/registry')).templates);
  const taken = new Set<string>();
  const planned: PlannedImport[] = [];
  for (const server of servers) {
    const own = await ownTemplate(server, gateway, { records, taken });
    const template = own?.id ?? freeId(server.id, (id) => records.has(id) || taken.has(id));
    taken.add(template);
    const state = stateOf(
      server,
      template,
      own,
      fields(Object.hasOwn(templates, template) ? templates[template] : undefined),
    );
    planned.push({ server, template, state, isFiled: own?.isFiled === true });
  }
  return planned;
}

interface OwnTemplate {
  readonly id: string;
  readonly definition: JsonObject;
  readonly isFiled: boolean;
}

/** The template that has this server: from an earlier import, or by a file of the folder. */
async function ownTemplate(
  server: ImportedServer,
  gateway: Remote | undefined,
  { records, taken }: { readonly records: ReadonlyMap<string, Fields>; readonly taken: ReadonlySet<string> },
): Promise<OwnTemplate | undefined> {
  for (const [id, { is_defined: isDefined, is_stored: isStored, tags }] of records) {
    const isNamedSo = id === server.id || (isStored === true && id.startsWith(`${server.id}-`));
    if (!isNamedSo || taken.has(id) || isDefined !== true) continue;
    if (isStored === true ? !elementsOf(tags).includes('imported') : server.instance === undefined) continue;
    const definition = await gateway?.request(`/gateway/templates/${encodeURIComponent(id)}/definition`);
    if (!isJsonObject(definition) || identityOf(definition) !== identityOf(server.definition)) continue;
    const isFiled = isStored !== true;
    if (isFiled || definition.name === server.definition.name) return { id, definition, isFiled };
  }
  return undefined;
}

function stateOf(
  { definition, instance }: ImportedServer,
  template: string,
  own: OwnTemplate | undefined,
  { instances }: Fields,
): PlannedImport['state'] {
  if (own === undefined) return 'new';
  const registered = objectsOf(instances).find(({ id }) => id === firstInstanceId(template));
  if (own.isFiled && registered === undefined) return 'new';
  if (!own.isFiled && !isDeepStrictEqual(own.definition, { id: template, ...definition })) return 'changed';
  if (instance === undefined) return 'unchanged';
  return isDigestOf(fields(registered?.metadata).imported, instance) ? 'unchanged' : 'changed';
}

export function firstInstanceId(template: string): string {
  return `${template}-1`;
}

/** The names of the variables whose values a definition gives, fixed or as defaults. */
function givenVariables({
  environment,
  config_schema: schema,
}: ImportedServer['definition']): readonly string[] {
  const settings = objectsOf(Object.values(fields(fields(schema).properties)));
  const defaults = settings.filter((setting) => setting.default !== undefined);
  return [
    ...Object.keys(fields(environment)),
    ...defaults.flatMap(({ env_mapping: name }) => (typeof name === 'string' ? [name] : [])),
  ];
}

/**
 * The command or the address in a form without secrets; with a command the names of its variables, such as NODE_OPTIONS, and its
 * folder, which may make another program of it.
 */
export function shownTarget({ definition, instance }: ImportedServer): string {
  const { command, args, endpoint } = instance ?? definition;
  if (typeof command === 'string') {
    const words = elementsOf(args).map(String);
    const shown = words.map((word, index) => withoutSecretWord(word, words[index - 1]));
    const line = [command, ...shown]
      .map((word) => (/[\s"']|^$/.test(word) ? JSON.stringify(word) : word))
      .join(' ');
    const names = [
      ...new Set([...givenVariables(definition), ...Object.keys(instance?.env_vars ?? {})]),
    ].join(', ');
    const folder = instance?.working_dir;
    return `${line}${names && ` with ${names}`}${folder === undefined ? '' : ` in ${folder}`}`;
  }
  return shownAddress(String(endpoint ?? ''));
}
