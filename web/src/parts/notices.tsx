// Short confirmations and failures of actions, which screen readers announce. They disappear by themselves; failures stay longer.

import { signal } from '@preact/signals';
import { messageOf } from '../api.ts';
import { Icon } from './icon.tsx';

interface Notice {
  readonly id: number;
  readonly text: string;
  readonly tone: 'ok' | 'bad';
}

const STAYS_MS = { ok: 4_000, bad: 12_000 };
const notices = signal<readonly Notice[]>([]);
let nextId = 0;

export function notify(text: string, tone: Notice['tone'] = 'ok'): void {
  nextId += 1;
  const notice = { id: nextId, text, tone };
  notices.value = [...notices.value.slice(-2), notice];
  setTimeout(() => dismiss(notice.id), STAYS_MS[tone]);
}

/** Runs an action, and reports its success or the reason of its failure. True for a success. */
export async function attempt(action: () => Promise<unknown>, done?: string): Promise<boolean> {
  try {
    await action();
    if (done !== undefined) notify(done);
    return true;
  } catch (thrown) {
    notify(messageOf(thrown), 'bad');
    return false;
  }
}

function dismiss(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map(({ id, text, tone }) => (
        <div key={id} class={`notice ${tone}`}>
          <Icon name={tone === 'ok' ? 'healthy' : 'bad'} />
          <span>{text}</span>
          <button type="button" class="plain" aria-label="Dismiss" onClick={() => dismiss(id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
