// What has to happen so that a node runs what is stored: compares the instances it knows with those in the store.
// Pure; doing it is registry.ts.

import { isDeepStrictEqual } from 'node:util';
import type { InstanceDefinition } from '../domain/instance.ts';

/** Everything that is to be done, in this order. Definitions are those of the store, but for `gone`. */
export interface Differences {
  /** Known here, and stored no more. */
  readonly gone: readonly InstanceDefinition[];
  /** Stored, and not known here. */
  readonly added: readonly InstanceDefinition[];
  /** Another program, another address or another node under the same id. */
  readonly replaced: readonly InstanceDefinition[];
  /** Other words about the same backend: weight, metadata, where it came from, when it was changed. */
  readonly changed: readonly InstanceDefinition[];
}

/**
 * Compares by template and id. An instance that is a function of this program is in no store: it stays, and what is
 * stored under its id or server id has to wait until it goes. One whose server id is another than before is another
 * instance: it is in `gone` and in `added`.
 */
export function differences(
  known: readonly InstanceDefinition[],
  stored: readonly InstanceDefinition[],
): Differences {
  const [functions, backends] = [known.filter(isFunction), known.filter((one) => !isFunction(one))];
  const heldKeys = new Set(functions.map(keyOf));
  const heldServerIds = new Set(functions.map(({ serverId }) => serverId));
  const wanted = stored.filter((one) => !heldKeys.has(keyOf(one)) && !heldServerIds.has(one.serverId));
  const wantedByKey = new Map(wanted.map((one) => [keyOf(one), one]));
  const stays = (one: InstanceDefinition) => wantedByKey.get(keyOf(one))?.serverId === one.serverId;
  const staying = new Map(backends.filter(stays).map((one) => [keyOf(one), one]));

  const added: InstanceDefinition[] = [];
  const replaced: InstanceDefinition[] = [];
  const changed: InstanceDefinition[] = [];
  for (const after of wanted) {
    const before = staying.get(keyOf(after));
    if (before === undefined) added.push(after);
    else if (!isDeepStrictEqual(backendOf(before), backendOf(after))) replaced.push(after);
    else if (!isDeepStrictEqual(before, after)) changed.push(after);
  }
  return { gone: backends.filter((one) => !stays(one)), added, replaced, changed };
}

/** What cannot change while a session goes on. */
function backendOf({
  nodeId,
  transport,
  endpoint,
  command,
  args,
  workingDir,
  force,
  container,
  env,
  headers,
  locked,
}: InstanceDefinition) {
  return { locked, nodeId, transport, endpoint, command, args, workingDir, force, container, env, headers };
}

function isFunction({ transport }: InstanceDefinition): boolean {
  return transport === 'in-process';
}

/** Unique, because no template name holds a slash. */
function keyOf({ template, id }: InstanceDefinition): string {
  return `${template}/${id}`;
}
