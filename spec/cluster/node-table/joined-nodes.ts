// Nodes on one store in memory, in simulated time, for specs of the table of members.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { PingResult } from '../../../src/cluster/channel/peer-pings.ts';
import { NodeTable } from '../../../src/cluster/node-table/node-table.ts';
import { ClusterCounts } from '../../../src/counts/cluster-counts.ts';
import type { ProgramHost, ShownNode } from '../../../src/domain/nodes/nodes.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { simulatedClock } from '../../helpers/time/simulated-time.ts';

const SECRET = 'a secret of these nodes, 32 bytes or more';

interface Options {
  readonly secrets?: readonly [string, ...string[]];
  /** Sends no heartbeat after its start. */
  readonly isDead?: boolean;
  readonly onNextLife?: () => Promise<void>;
  /** Lives that get no answer from the database. Default: all get one. */
  readonly away?: ReadonlySet<string>;
}

/** Nodes on one store. What pings, other members and the programs do is set and recorded here. */
export class JoinedNodes {
  store = new MemoryStore();
  /** What pings of each life meet; silent: no answer. */
  readonly pings = new Map<string, PingResult | 'silent'>();
  /** What the members that are asked about another one say, by their life. Default: they reach it. */
  readonly opinions = new Map<string, 'reached' | 'refused' | 'silent'>();
  /** `<third> about <life>` */
  readonly questions: string[] = [];
  /** What the wall clock of the machine was put forward. */
  setMs = 0;
  /** How long the machine was suspended. */
  suspendedMs = 0;
  readonly notices: string[] = [];
  /** What happened to the program: its life, and whether it was started, stopped or killed. */
  readonly programs: (readonly [life: string, what: string])[] = [];
  doing: Pick<ShownNode, 'programs' | 'calls' | 'isDraining'> = { programs: 0, calls: 0, isDraining: false };
  readonly #tables = new Map<string, NodeTable>();

  async join(
    node: string,
    {
      secrets: [first, ...others] = [SECRET],
      isDead = false,
      onNextLife = async () => {},
      away,
    }: Options = {},
  ): Promise<NodeTable & { readonly counts: ClusterCounts; halt(): void }> {
    const life = `life-${node}-${this.#tables.size}`;
    let cancel = (): void => {};
    const { background } = simulatedClock;
    const every: typeof background.every = (everyMs, callback) => {
      cancel = isDead ? () => {} : background.every(everyMs, callback);
      return cancel;
    };
    const counts = new ClusterCounts();
    const table = new NodeTable({
      nodes: unlessAway(this.store.nodes, () => away?.has(life)),
      settings: unlessAway(this.store.settings, () => away?.has(life)),
      programs: away && {
        store: unlessAway(this.store.programs, () => away.has(life)),
        host: this.#hostOf(life),
      },
      own: { node, life, address: `http://${node}:1` },
      version: '1.0.0',
      secrets: [Buffer.from(first), ...others.map((secret) => Buffer.from(secret))],
      clock: { ...simulatedClock, wall: () => Date.now() + this.setMs, background: { ...background, every } },
      uptime: () => simulatedClock.now() + this.suspendedMs,
      pings: {
        askThird: (third, life, report) => {
          this.questions.push(`${third.life} about ${life}`);
          const opinion = this.opinions.get(third.life) ?? 'reached';
          if (opinion !== 'silent') report(opinion === 'refused');
        },
        askDatabase: (member, report) => {
          const asked = this.#tables.get(member.life);
          if (asked?.life !== member.life) return; // it goes on under another life
          void asked.isDatabaseAway(table.life).then((isAway) => isAway !== undefined && report(isAway));
        },
        ping: (member, report) => {
          const result = this.pings.get(member.life) ?? 'answered';
          if (result !== 'silent') report(result);
        },
        keep: () => {},
      },
      report: () => this.doing,
      onNextLife,
      onNotice: (line) => this.notices.push(line),
      counts,
    });
    this.#tables.set(life, table);
    await table.join();
    return Object.assign(table, { counts, halt: () => cancel() });
  }

  /** Runs the one program of the deployment, and notes what happens to it. */
  #hostOf(life: string): ProgramHost {
    let isRunning = false;
    const end = async (how: string): Promise<void> => {
      if (isRunning) this.programs.push([life, how]);
      isRunning = false;
    };
    return {
      mayFormerRun: false,
      list: () => [{ program: 'one', changedAt: '' }],
      onChanged: () => {},
      start: (_program, { onStarted }) => {
        isRunning = true;
        this.programs.push([life, 'start']);
        onStarted();
      },
      stop: () => end('stop'),
      kill: () => end('kill'),
      lease: () => {},
      place: () => {},
    };
  }
}

/** What it is asked while the database is away has no answer. */
function unlessAway<Part extends object>(part: Part, isAway: () => boolean | undefined): Part {
  return new Proxy(part, {
    get: (target, name) => {
      const value = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...values: unknown[]) =>
        isAway() ? new Promise(() => {}) : Reflect.apply(value, target, values);
    },
  });
}

/** Passes this simulated time in steps, with turns of the event loop between them. */
export async function pass(ms: number, stepMs = 500): Promise<void> {
  for (let leftMs = ms; leftMs > 0; leftMs -= stepMs) {
    mock.timers.tick(stepMs);
    for (let left = 4; left > 0; left -= 1) await turn();
  }
}

/** The row of a session of this life, as it is stored. */
export function rowOf(life: string, node = 'b') {
  return { key: 'k', node, life, generation: 3, value: '', usedAt: '' };
}
