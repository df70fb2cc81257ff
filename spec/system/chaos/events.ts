// Faults of the backends in the chaos journey, and actions of an administrator. Each event ends, or begins to be undone, within
// a few seconds.

import { setTimeout as delay } from 'node:timers/promises';
import type { Dice } from '../../helpers/dice.ts';
import { readProcessFile } from '../../helpers/programs/processes.ts';
import { type ChaosBackends, SETTINGS } from './backends.ts';
import type { ChaosHarness } from './chaos-harness.ts';

/** Longest pause between two events. */
const breathMs = 700;
/** Longest time until an event is undone. */
const spellMs = 2_500;

interface Happening {
  readonly weight: number;
  readonly act: () => unknown;
}

/** Causes events until `isOver`; then all of them are undone. */
export async function makeTrouble(
  chaos: ChaosHarness,
  backends: ChaosBackends,
  dice: Dice,
  isOver: () => boolean,
): Promise<void> {
  /** Events that are still to be undone. */
  const undoing: Promise<unknown>[] = [];
  const later = (undo: () => Promise<unknown>): void => {
    undoing.push(delay(dice.next() * spellMs).then(undo));
  };
  const admin = (request: string, body: object = {}) => chaos.harness.admin(request, body);
  const instance = () => dice.pick(backends.instances);
  const command = (verb: string) => {
    const { template, body } = instance();
    return admin(`POST /gateway/instances/${template}/${body.id}/${verb}`);
  };
  const happenings: readonly Happening[] = [
    { weight: 3, act: () => signalChild(chaos, dice, 'SIGKILL') },
    {
      weight: 2,
      act: () => {
        const pid = signalChild(chaos, dice, 'SIGSTOP');
        if (pid !== undefined) later(async () => signal(pid, 'SIGCONT'));
      },
    },
    {
      weight: 2,
      act: () => {
        const server = dice.pick(backends.servers);
        server.kill();
        later(() => server.revive());
      },
    },
    { weight: 2, act: () => void undoing.push(dice.pick(backends.servers).freeze(dice.next() * spellMs)) },
    { weight: 1, act: () => backends.far.endStreams() },
    {
      weight: 2,
      act: () => {
        for (let count = 0; count < 20; count += 1) backends.far.notify('notifications/tools/list_changed');
      },
    },
    { weight: 2, act: () => command('restart') },
    {
      weight: 2,
      act: async () => {
        const { template, body } = instance();
        await admin(`POST /gateway/instances/${template}/${body.id}/drain`);
        later(() => admin(`POST /gateway/instances/${template}/${body.id}/resume`));
      },
    },
    {
      weight: 2,
      act: async () => {
        const { template, body } = instance();
        await chaos.harness.admin(`DELETE /gateway/deregister/${template}/${body.id}`);
        later(() => register(chaos, template, body));
      },
    },
    { weight: 1, act: () => register(chaos, 'far', backends.instances.at(-1)?.body ?? {}) },
  ];
  while (!isOver()) {
    await dice.weighted(happenings).act();
    await delay(dice.next() * breathMs);
  }
  await Promise.all(undoing);
}

/** Restores every backend and instance. */
export async function mend(chaos: ChaosHarness, { servers, instances }: ChaosBackends): Promise<void> {
  await Promise.all(servers.map((server) => server.revive()));
  for (const { template, body } of instances) {
    const resumed = await chaos.harness.admin(`POST /gateway/instances/${template}/${body.id}/resume`, {});
    if (resumed.status === 404) await register(chaos, template, body);
  }
}

export function register({ harness }: ChaosHarness, template: string, instance: object) {
  const settings = SETTINGS[template];
  const more = settings === undefined ? {} : { load_balancer: settings };
  return harness.admin('POST /gateway/register', { template_name: template, instance, ...more });
}

/** Signals one of the programs that the gateway runs; returns its pid, or undefined if there is none. */
function signalChild({ harness }: ChaosHarness, dice: Dice, name: NodeJS.Signals): number | undefined {
  const children = harness.program
    .descendants()
    .filter((pid) => readProcessFile(pid, 'cmdline').includes('stdio-server'));
  if (children.length === 0) return undefined;
  const pid = dice.pick(children);
  signal(pid, name);
  return pid;
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended meanwhile.
  }
}
