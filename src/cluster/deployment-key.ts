// The id of the deployment's key in its database: a node without this key is named at its start while others go on with it. Also
// the salt of the name of the key on the network. Source: ADR 147, 190, 189.

import { randomBytes } from 'node:crypto';
import { type Secrets, secretId } from '../auth/secrets/secrets.ts';
import type { Store } from '../persistence/store.ts';

export const KEY_SETTING = 'cluster.key';

/**
 * True if one of these secrets is the key of the deployment, which the first node stores. A node that signs with another
 * of its own replaces it: a rotation has gone on. So does one that does not know it, when no other node has it either.
 */
export async function knowsDeploymentKey(
  settings: Store['settings'],
  { secrets, isElsewhere }: { readonly secrets: Secrets; readonly isElsewhere: boolean },
): Promise<boolean> {
  const [first, ...others] = secrets.map(secretId);
  if (await settings.exchange(KEY_SETTING, undefined, first)) return true;
  const stored = await settings.read(KEY_SETTING);
  if (stored === first) return true;
  if (stored === undefined || (isElsewhere && !others.includes(stored))) return false;
  await settings.exchange(KEY_SETTING, stored, first); // fails only if another node has replaced it meanwhile
  return true;
}

const SALT_SETTING = 'cluster.salt';

/** A random text that all nodes on this database have. The first one makes it. */
export async function deploymentSalt(settings: Store['settings']): Promise<string> {
  const made = randomBytes(32).toString('base64url');
  if (await settings.exchange(SALT_SETTING, undefined, made)) return made;
  return (await settings.read(SALT_SETTING)) ?? made; // nothing deletes it
}

/** The warning about a node that is not a member, with its remedy. */
export function otherKey(node: string): string {
  return `the node "${node}" has another secret than the other nodes of its database, and is not a member: set the same GATEWAY_SECRET_KEY`;
}
