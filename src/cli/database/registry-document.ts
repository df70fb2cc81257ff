// Writes what a database holds as a registry document, the first shape of docs/guides/registry-file.md. Reading one is
// persistence/registry-file.ts; taking it into a database is import-document.ts.

import type { InstanceDefinition } from '../../domain/instance.ts';
import type { TemplateSettings } from '../../domain/template.ts';

/** `{ templates: { name: { load_balancer?, instances } } }`; entries have the fields of a registration. */
export interface RegistryDocument {
  readonly templates: Readonly<Record<string, DocumentSection>>;
}

export interface DocumentSection {
  readonly load_balancer?: TemplateSettings['loadBalancer'];
  readonly instances: readonly Readonly<Record<string, unknown>>[];
}

export interface Exported {
  readonly document: RegistryDocument;
  /** `template/id` of instances whose variables or headers were left out. */
  readonly withheld: readonly string[];
  /** Of these the secrets were asked for and cannot be read; one line each that says why. */
  readonly unreadable: readonly string[];
}

/** The document of these templates and instances, in the order of their names. Secrets are left out, not masked: a mask
 *  would be taken for a value. */
export function registryDocument(
  templates: readonly TemplateSettings[],
  instances: readonly InstanceDefinition[],
  { withSecrets }: { readonly withSecrets: boolean },
): Exported {
  const [withheld, unreadable]: [string[], string[]] = [[], []];
  const names = new Set([...templates.map(({ name }) => name), ...instances.map(({ template }) => template)]);
  const sections = [...names].sort().map((name): [string, DocumentSection] => {
    const loadBalancer = templates.find((each) => each.name === name)?.loadBalancer ?? {};
    const members = instances
      .filter(({ template, transport }) => template === name && transport !== 'in-process')
      // A sync finds it where it runs; elsewhere its command would be a program of that machine.
      .filter(({ source }) => source !== 'sync')
      .toSorted((one, other) => (one.id < other.id ? -1 : 1));
    for (const each of members) {
      if (!withSecrets && hasSecrets(each)) withheld.push(`${name}/${each.id}`);
      if (withSecrets && each.locked !== undefined) unreadable.push(`${name}/${each.id}: ${each.locked}`);
    }
    const entries = members.map((each) => entryOf(each, withSecrets));
    return [name, { ...(isEmpty(loadBalancer) ? {} : { load_balancer: loadBalancer }), instances: entries }];
  });
  return { document: { templates: Object.fromEntries(sections) }, withheld, unreadable };
}

function entryOf(instance: InstanceDefinition, withSecrets: boolean): Readonly<Record<string, unknown>> {
  const { id, transport, endpoint, command, args, workingDir, force, env, headers, weight, metadata } =
    instance;
  const fields = {
    id,
    transport,
    endpoint,
    command,
    // Always written beside a command: without them the command would be split into words when it is read.
    args: command === undefined ? undefined : args,
    working_dir: workingDir,
    force,
    env_vars: withSecrets && !isEmpty(env) ? env : undefined,
    headers: withSecrets && !isEmpty(headers) ? headers : undefined,
    weight,
    metadata: isEmpty(metadata) ? undefined : metadata,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function hasSecrets({ env, headers, locked }: InstanceDefinition): boolean {
  return !isEmpty(env) || !isEmpty(headers) || locked !== undefined;
}

function isEmpty(value: object): boolean {
  return Object.keys(value).length === 0;
}
