// Present problems in words, from the states of the instances and the numbers of the last minute.

import { computed } from '@preact/signals';
import { connection } from './events.ts';
import { percent, plural } from './format.ts';
import { waitsForAccount } from './parts/state.tsx';
import {
  failedRestarts,
  gatewayNow,
  isBehind,
  MANY_RESTARTS,
  minuteOf,
  templateSamples,
  templates,
  withheld,
} from './store.ts';
import type { Instance } from './types.ts';

export interface Problem {
  readonly level: 'bad' | 'warn';
  readonly text: string;
  /** The template to open for details, when only one is concerned. */
  readonly template?: string;
  readonly detail?: string | undefined;
}

/** Share of failures in a minute above which a template is mentioned. */
const FAILING_SHARE = 0.05;
const FEW_CALLS = 5;
const RECENT_MS = 900_000;

export const problems = computed<readonly Problem[]>(() => {
  const found: Problem[] = [];
  if (isBehind.value) {
    found.push({
      level: 'warn',
      text: 'Changes of other nodes cannot be read: the database does not answer.',
    });
  }
  for (const [template, members] of templates.value) found.push(...problemsOf(template, members));
  return found.sort((a, b) => Number(b.level === 'bad') - Number(a.level === 'bad'));
});

/** One sentence about the whole gateway. */
export const summary = computed(() => {
  const groups = [...templates.value.values()].filter((members) => members.length > 0);
  const all = groups.flat().filter(({ state }) => state !== 'stopped');
  if (connection.value === 'offline') return 'The gateway does not answer. This is its last known state.';
  if (all.length === 0) return 'No instance is registered yet.';
  const serving = all.filter(isAvailable).length;
  const size = `${plural(all.length, 'instance')} in ${plural(groups.length, 'template')}`;
  return serving === all.length ? `All healthy: ${size}.` : `${serving} of ${size} are available.`;
});

const isAvailable = ({ healthy, ejection }: Instance): boolean => healthy && ejection === null;

function* problemsOf(template: string, members: readonly Instance[]): Generator<Problem> {
  const wanted = members.filter(({ state }) => state !== 'stopped' && state !== 'draining');
  const sick = wanted.filter(({ healthy, state }) => !healthy && state !== 'starting');
  const detail = sick.find(({ reason }) => reason !== null)?.reason ?? undefined;
  if (members.length > 0 && !members.some(isAvailable)) {
    const starts = wanted.some(({ state }) => state === 'starting');
    const text = starts ? 'No instance is ready yet; some are starting.' : 'No instance is available.';
    yield { level: starts ? 'warn' : 'bad', template, text, detail };
  } else if (sick.length > 0) {
    const names = sick.length <= 3 ? sick.map(({ id }) => id).join(', ') : plural(sick.length, 'instance');
    const verb = sick.length === 1 ? 'is' : 'are';
    yield {
      level: 'warn',
      template,
      text: `${names} ${verb} unhealthy; the other instances serve the calls.`,
      detail,
    };
  }
  const draining = members.filter(({ state }) => state === 'draining');
  if (draining.length > 0) {
    const names =
      draining.length <= 3 ? draining.map(({ id }) => id).join(', ') : plural(draining.length, 'instance');
    const verb = draining.length === 1 ? 'is' : 'are';
    yield {
      level: 'warn',
      template,
      text: `${names} ${verb} draining and ${verb === 'is' ? 'gets' : 'get'} no new calls.`,
    };
  }
  for (const { id, ejection } of wanted) {
    if (ejection === null) continue;
    yield { level: 'warn', template, text: `${id} is ejected: its calls fail.`, detail: ejection.reason };
  }
  const sinceMs = gatewayNow() - RECENT_MS;
  for (const { id } of wanted.filter(waitsForAccount))
    yield { level: 'warn', template, text: `${id} waits for an account at its server.` };
  const isRestarting = ({ server_id }: Instance): boolean =>
    (failedRestarts.get(server_id)?.at(-MANY_RESTARTS) ?? 0) > sinceMs;
  for (const { id } of wanted.filter(isAvailable).filter(isRestarting).slice(0, 3))
    yield { level: 'warn', template, text: `${id} keeps failing and restarting.` };
  const [first, ...others] = withheld.value.get(template) ?? [];
  if (first !== undefined) {
    const isOne = others.length === 0;
    const text = `${plural(others.length + 1, 'item')} ${isOne ? 'is' : 'are'} withheld at /mcp: clients could not use ${isOne ? 'it' : 'them'}.`;
    yield { level: 'warn', template, text, detail: `${first.list}, ${first.name}: ${first.reason}` };
  }
  const { requests, failures } = minuteOf({ template });
  if (failures >= FEW_CALLS && failures > requests * FAILING_SHARE) {
    const share = percent(failures, requests);
    yield { level: 'bad', template, text: `${share} of its calls failed in the last minute.` };
  }
  const queued = templateSamples.value.get(template)?.queued ?? 0;
  if (queued > 0) {
    const verb = queued === 1 ? 'waits' : 'wait';
    yield { level: 'warn', template, text: `${plural(queued, 'call')} ${verb} for a free instance.` };
  }
}
