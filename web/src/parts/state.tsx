// The state of an instance: a word, a shape and a colour.

import { href } from '../router.ts';
import type { Instance } from '../types.ts';
import { Icon, type IconName } from './icon.tsx';

export type Tone = 'ok' | 'warn' | 'bad' | 'idle';

export interface Look {
  readonly tone: Tone;
  readonly icon: IconName;
  readonly word: string;
}

const LOOKS: Readonly<Record<Instance['state'], Look>> = {
  healthy: { tone: 'ok', icon: 'healthy', word: 'Healthy' },
  unhealthy: { tone: 'bad', icon: 'bad', word: 'Unhealthy' },
  starting: { tone: 'idle', icon: 'starting', word: 'Starting' },
  draining: { tone: 'idle', icon: 'draining', word: 'Draining' },
  stopped: { tone: 'idle', icon: 'stopped', word: 'Stopped' },
};
/** Healthy with a reason: the server answers, and the account for it is missing. */
const WAITING: Look = { tone: 'warn', icon: 'warn', word: 'No account' };
const EJECTED: Look = { tone: 'warn', icon: 'warn', word: 'Ejected' };

export function StateBadge({ instance }: { readonly instance: Instance }) {
  const isEjected = instance.state === 'healthy' && instance.ejection !== null;
  return <Badge {...(isEjected ? EJECTED : waitsForAccount(instance) ? WAITING : LOOKS[instance.state])} />;
}

/** True for an instance that carries no calls until its account is connected. */
export function waitsForAccount({ auth, state, reason }: Instance): boolean {
  return auth !== undefined && state === 'healthy' && reason !== null;
}

/** The link to the page where the account is connected, beside the reason of an instance that is used with an account. */
export function AccountsLink({ instance }: { readonly instance: Instance }) {
  if (instance.auth === undefined) return null;
  return <a href={href('connections')}>Connected accounts</a>;
}

export function Badge({ tone, icon, word }: Look) {
  return (
    <span class={`badge ${tone}`}>
      <Icon name={icon} />
      {word}
    </span>
  );
}
