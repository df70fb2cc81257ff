// The state of an instance: a word, a shape and a colour.

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
const EJECTED: Look = { tone: 'warn', icon: 'warn', word: 'Ejected' };

export function StateBadge({ instance }: { readonly instance: Pick<Instance, 'state' | 'ejection'> }) {
  const isEjected = instance.state === 'healthy' && instance.ejection !== null;
  return <Badge {...(isEjected ? EJECTED : LOOKS[instance.state])} />;
}

export function Badge({ tone, icon, word }: Look) {
  return (
    <span class={`badge ${tone}`}>
      <Icon name={icon} />
      {word}
    </span>
  );
}
