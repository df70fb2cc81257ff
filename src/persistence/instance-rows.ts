// An instance as a row and back. Its secrets (values of environment variables and headers) are sealed on the way in.

import type { InstanceDefinition, InstanceSource, TransportKind } from '../domain/instance.ts';
import { CipherError } from './cipher.ts';
import { fromDocument, type InstanceRow, toDocument } from './entities.ts';

/** Seals and opens one field of one instance. */
export interface Encryption {
  seal(text: string, field: 'env' | 'headers'): string;
  /** Throws VaultError. */
  open(sealed: string, field: 'env' | 'headers'): string;
}

/** What a save replaces: all but the key and the place in lists. */
type ReplacedColumns = {
  [Column in Exclude<keyof InstanceRow & string, 'template' | 'id' | 'position'>]-?: InstanceRow[Column];
};
type Target = Pick<
  InstanceDefinition,
  'endpoint' | 'command' | 'args' | 'workingDir' | 'force' | 'container'
>;
type Texts = Readonly<Record<string, string>>;

/** Throws what `seal` throws; nothing is sealed when there is nothing to hide. */
export function rowOfInstance(definition: InstanceDefinition, { seal }: Encryption) {
  const { endpoint, command, args, workingDir, force, container, env, headers } = definition;
  const target: Target = {
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(command === undefined ? {} : { command }),
    args,
    ...(workingDir === undefined ? {} : { workingDir }),
    ...(force === undefined ? {} : { force }),
    ...(container === undefined ? {} : { container }),
  };
  const sealed = (texts: Texts, field: 'env' | 'headers') =>
    Object.keys(texts).length === 0 ? null : seal(JSON.stringify(texts), field);
  return {
    serverId: definition.serverId,
    transport: definition.transport,
    weight: definition.weight,
    source: definition.source,
    nodeId: definition.nodeId ?? null,
    fingerprint: definition.fingerprint ?? null,
    target: toDocument(target),
    env: sealed(env, 'env'),
    headers: sealed(headers, 'headers'),
    metadata: toDocument(definition.metadata),
    createdAt: new Date(definition.createdAt),
    updatedAt: new Date(definition.updatedAt),
  } satisfies ReplacedColumns;
}

/** What cannot be opened locks the instance and leaves the rest of it readable. The casts are what `rowOfInstance` wrote. */
export function instanceOf(row: InstanceRow, seals: Encryption): InstanceDefinition {
  return {
    id: row.id,
    serverId: row.serverId,
    template: row.template,
    transport: row.transport as TransportKind,
    ...(fromDocument(row.target) as Target),
    ...secretsOf(row, seals),
    weight: row.weight,
    metadata: fromDocument(row.metadata) as InstanceDefinition['metadata'],
    source: row.source as InstanceSource,
    ...(row.nodeId ? { nodeId: row.nodeId } : {}),
    ...(row.fingerprint ? { fingerprint: row.fingerprint } : {}),
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
}

function secretsOf(
  { env, headers }: InstanceRow,
  { open }: Encryption,
): Pick<InstanceDefinition, 'env' | 'headers' | 'locked'> {
  const opened = (sealed: string | null | undefined, field: 'env' | 'headers') =>
    sealed === null || sealed === undefined ? {} : (JSON.parse(open(sealed, field)) as Texts);
  try {
    return { env: opened(env, 'env'), headers: opened(headers, 'headers') };
  } catch (thrown) {
    if (!(thrown instanceof CipherError)) throw thrown;
    return { env: {}, headers: {}, locked: thrown.message };
  }
}
