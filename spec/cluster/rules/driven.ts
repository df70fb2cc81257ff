// One node that a spec drives by events: what its rules answer is what must follow. Source: ADR 146.

import {
  type NodeAction,
  type NodeEvent,
  type NodeState,
  newNode,
} from '../../../src/cluster/rules/node-state.ts';
import type { LifeRow, Moment, ProgramRow } from '../../../src/cluster/rules/rows.ts';
import { stepNode } from '../../../src/cluster/rules/step-node.ts';
import type { LifeEnd } from '../../../src/domain/nodes/life.ts';

/** A node `a` at a time of its own. Its database has these rows; they are read, and heartbeats are answered, unless it is away. */
export class Driven {
  state: NodeState;
  lives: LifeRow[] = [];
  programs: ProgramRow[] = [];
  isAway = false;
  atMs = 0;
  /** Time that the machine was suspended. */
  suspendedMs = 0;
  actions: NodeAction[] = [];
  /** Members beat like this node. */
  beating = new Set<string>();

  constructor(lives: LifeRow[] = [], programs: ProgramRow[] = []) {
    this.lives = lives;
    this.programs = programs;
    this.state = newNode('a', 'life-a', this.now);
  }

  get now(): Moment {
    return { atMs: this.atMs, uptimeMs: 1e9 + this.atMs + this.suspendedMs };
  }

  do(event: NodeEvent): NodeAction[] {
    const { state, actions } = stepNode(this.state, event, this.now);
    this.state = state;
    this.actions.push(...actions);
    for (const action of actions) this.#answer(action);
    return [...actions];
  }

  /** Ticks for this time; returns what was done, without pings, reads and heartbeats. */
  pass(ms: number): NodeAction[] {
    const from = this.actions.length;
    for (const endMs = this.atMs + ms; this.atMs < endMs; ) {
      this.atMs += 500;
      for (const life of this.beating) {
        this.lives = this.lives.map((row) =>
          row.life === life ? { ...row, counter: row.counter + 1 } : row,
        );
        this.do({ type: 'answered', life, sentAtMs: this.atMs });
      }
      this.do({ type: 'tick' });
    }
    const usual = new Set<string>(['ping', 'read', 'heartbeat', 'lease', 'join']);
    return this.actions.slice(from).filter(({ type }) => !usual.has(type));
  }

  #answer(action: NodeAction): void {
    if (action.type !== 'join' && action.type !== 'heartbeat' && action.type !== 'read') return;
    if (this.isAway) this.do({ type: 'failed', sentAtMs: this.atMs });
    else if (action.type === 'read')
      this.do({ type: 'read', rows: { lives: this.lives, programs: this.programs } });
    else this.do({ type: 'confirmed', life: this.state.own.life, sent: action.sent });
  }
}

export const row = (node: string, more: Partial<LifeRow> = {}): LifeRow => ({
  life: `life-${node}`,
  node,
  counter: 5,
  sees: ['life-a'],
  isDraining: false,
  followsRefusal: false,
  end: undefined,
  ...more,
});
export const program = (more: Partial<ProgramRow> = {}): ProgramRow => ({
  program: 'p',
  life: undefined,
  generation: 7,
  failedOn: [],
  ...more,
});
export const EXPIRED: LifeEnd = { cause: 'expired', frees: 'all' };
export const REFUSED: LifeEnd = { cause: 'refused', frees: 'sessions' };
export const typesOf = (actions: readonly NodeAction[]): string[] => actions.map(({ type }) => type);
export const endsOf = (actions: readonly NodeAction[]) => actions.filter(({ type }) => type === 'end');
/** A node that has joined these. */
export function joined(lives: LifeRow[] = [], programs: ProgramRow[] = [], waitMs = 20_000): Driven {
  const node = new Driven(lives, programs);
  for (const { life, end } of lives) if (end === undefined) node.beating.add(life);
  node.pass(waitMs);
  node.actions = [];
  return node;
}
