// A process of a simulated cluster: it carries out the actions of the rules against the world, has a reaper, and serves sessions (simulated-sessions.ts). A frozen
// process (SIGSTOP) gets its events when it continues, a killed one gets none.

import {
  type NodeAction,
  type NodeEvent,
  type NodeState,
  newNode,
} from '../../../src/cluster/rules/node-state.ts';
import type { LifeRow, Moment } from '../../../src/cluster/rules/rows.ts';
import { stepNode } from '../../../src/cluster/rules/step-node.ts';
import { type ServingNode, SimulatedSessions } from './simulated-sessions.ts';
import { type Machine, replace, Violation, type World } from './simulated-world.ts';
import { beaten, ended, released, taken } from './updates.ts';

const TICK_MS = 500;
/** As in times.ts. */
const SUSPENDED_MS = 2_000;
/** As in times.ts. */
const EXPIRY_MS = 10_000;
/** Longest time from SIGKILL to the end of a group, in ms. */
const KILLED_MS = 300;
/** Shorter than LONG_TIMES, so that schedules stay short. */
const TIMES = { keptMs: 20_000, unseenMs: 30_000 };

/** What the nodes of one cluster have in common. */
export interface Cluster {
  readonly world: World;
  readonly nodes: SimulatedNode[];
  /** Called when a life was ended by another node. */
  readonly onEnd: (row: LifeRow, owner: SimulatedNode | undefined) => void;
  readonly onKill: (node: SimulatedNode) => void;
  readonly counts: Record<string, number>;
  /** Programs that a node cannot start. */
  readonly unable: ReadonlySet<string>;
  /** A part that is missing, to show that the invariants see it. */
  readonly without: 'reaper' | 'fence' | 'counter' | 'mark' | undefined;
}

export class SimulatedNode implements ServingNode {
  readonly id: string;
  readonly machine: Machine;
  readonly #cluster: Cluster;
  state: NodeState;
  isAlive = true;
  isStopping = false;
  frozenUntilMs = 0;
  /** Its peer listener refuses connections, though it lives. */
  isDeaf = false;
  /** More latency of its answers to pings, in ms. */
  slowMs = 0;
  readonly sessions: SimulatedSessions;
  /** Of the reaper, by the clock of the machine. */
  #deadlineMs = Number.NEGATIVE_INFINITY;
  #reads = 0;

  constructor(id: string, machine: Machine, cluster: Cluster) {
    this.id = id;
    this.machine = machine;
    this.#cluster = cluster;
    this.sessions = new SimulatedSessions(this, cluster);
    this.state = newNode(id, this.#draw(), this.moment, { times: TIMES });
    this.#world.note(() => `${this.name} starts as ${this.state.own.life}`);
    // The reaper counts the suspension, too: its process may be dead by then.
    machine.onWake.push((ms) => {
      if (ms > SUSPENDED_MS) this.#reap();
    });
    this.#tick();
  }

  get name(): string {
    return `${this.id}@${this.machine.number}`;
  }

  get #world(): World {
    return this.#cluster.world;
  }

  get moment(): Moment {
    const { nowMs } = this.#world;
    return { atMs: this.#world.clockOf(this.machine), uptimeMs: nowMs + this.machine.uptimeMs };
  }

  get isRunning(): boolean {
    const { nowMs } = this.#world;
    return this.isAlive && this.frozenUntilMs <= nowMs && this.machine.asleepUntilMs <= nowMs;
  }

  /** SIGKILL: the reaper sees the end of its input and ends the groups. */
  kill(): void {
    if (!this.isAlive) return;
    this.#world.note(() => `${this.name} is killed`);
    this.isAlive = false;
    this.#reaperAfter(this.#world.between(0, 8_000), () => this.#reap());
  }

  /** Later in this process; when it is frozen, once it continues. */
  later(waitMs: number, task: () => void): void {
    const world = this.#world;
    world.after(waitMs, () => {
      if (!this.isAlive) return;
      const untilMs = Math.max(this.frozenUntilMs, this.machine.asleepUntilMs);
      if (untilMs > world.nowMs) this.later(untilMs - world.nowMs, task);
      else task();
    });
  }

  /** Later in the reaper, which stops only with the machine. */
  #reaperAfter(waitMs: number, task: () => void): void {
    const world = this.#world;
    world.after(waitMs, () => {
      const { asleepUntilMs } = this.machine;
      if (asleepUntilMs > world.nowMs) this.#reaperAfter(asleepUntilMs - world.nowMs, task);
      else task();
    });
  }

  #tick(): void {
    if (this.state.own.stage === 'stopped') {
      this.isAlive = false;
      return;
    }
    this.handle({ type: 'tick' });
    if (
      this.isStopping &&
      [...this.state.programs.values()].every(({ row }) => row.life !== this.state.own.life)
    ) {
      const isIdle = [...this.state.programs.values()].every(({ phase }) => phase === 'none');
      if (isIdle) this.handle({ type: 'stop' });
    }
    this.later(TICK_MS, () => this.#tick());
  }

  handle(event: NodeEvent): void {
    const { state, actions } = stepNode(this.state, event, this.moment);
    this.state = state;
    for (const action of actions) this.#act(action);
  }

  #act(action: NodeAction): unknown {
    const world = this.#world;
    this.count(action.type);
    if (world.isTraced && action.type !== 'ping' && action.type !== 'read')
      world.note(() => `${this.name} ${JSON.stringify(action)}`);
    switch (action.type) {
      case 'join':
        return this.operate(
          () => {
            const { life } = action.row;
            if (!world.lives.has(life)) world.lives.set(life, action.row);
          },
          () => this.handle({ type: 'confirmed', life: action.row.life, sent: action.sent }),
        );
      case 'heartbeat':
        return this.operate(
          () => this.#beat(action.life, beaten(world.lives.get(action.life), action)),
          (isChanged) =>
            this.handle(
              isChanged
                ? { type: 'confirmed', life: action.life, sent: action.sent }
                : { type: 'heartbeatMissed', life: action.life },
            ),
        );
      case 'read': {
        this.#reads += 1;
        const read = this.#reads;
        return this.operate(
          () => ({ programs: [...world.programs.values()], lives: [...world.lives.values()] }),
          (rows) => {
            if (read !== this.#reads) return;
            this.handle({ type: 'read', rows });
            this.#reportFormer(rows.lives);
          },
        );
      }
      case 'end': {
        const { life, end } = action;
        const counter = this.#cluster.without === 'counter' ? undefined : action.counter;
        const { nowMs: decidedAtMs } = world;
        return this.operate(
          () => this.#endOther(life, ended(world.lives.get(life), counter, end), decidedAtMs),
          (isChanged) => !isChanged && this.handle({ type: 'endNotWritten', life }),
        );
      }
      case 'stop':
        return this.operate(
          () =>
            this.#end(
              action.life,
              ended(world.lives.get(action.life), undefined, { cause: 'stopped', frees: 'all' }),
            ),
          () => {},
        );
      case 'take':
        return this.operate(
          () => this.#take(action.program, action.generation, action.life),
          (isOurs) => this.handle({ ...action, type: 'taken', isOurs }),
          () => this.handle({ ...action, type: 'taken', isOurs: undefined }),
        );
      case 'release':
        return this.operate(
          () => {
            const row = released(
              world.programs.get(action.program),
              action.generation,
              action.life,
              action.failedOn,
            );
            return replace(world.programs, action.program, row);
          },
          () => this.handle({ type: 'released', program: action.program, isReleased: true }),
          () => this.handle({ type: 'released', program: action.program, isReleased: false }),
        );
      case 'ping':
        return this.later(action.afterMs, () => this.#ping(action.life));
      case 'askThird':
        return this.connect(action.third, (third) => {
          const isRefused = third.connection(action.life) === 'refused';
          const isReached = third.connection(action.life) === 'open';
          if (isRefused || isReached)
            this.later(world.between(1, 10), () =>
              this.handle({ type: 'thirdAnswered', life: action.life, isRefused }),
            );
        });
      case 'ask':
        return this.connect(action.life, (peer) => {
          if (peer.state.own.life === action.life)
            peer.handle({ type: 'asked', from: this.state.own.life, sent: action.sent });
        });
      case 'check':
        return this.operate(
          () => {},
          () =>
            this.handle({ type: 'databaseChecked', from: action.to, sent: action.sent, isAnswered: true }),
          () =>
            this.handle({ type: 'databaseChecked', from: action.to, sent: action.sent, isAnswered: false }),
        );
      case 'say': {
        const { life } = this.state.own;
        const { isAway, sent } = action;
        return this.connect(action.to, (peer) => peer.handle({ type: 'opinion', life, isAway, sent }));
      }
      case 'renew':
        return this.handle({ type: 'renewed', life: this.#draw() });
      case 'dropSessions':
        return this.sessions.clear();
      case 'lease':
        return this.#tellReaper(() => {
          this.#deadlineMs = Math.max(this.#deadlineMs, action.untilMs);
          this.#reapAt(action.untilMs);
        });
      case 'killPrograms':
        this.#cluster.onKill(this);
        return this.#tellReaper(() => this.#reap());
      case 'killProgram':
        return this.#tellReaper(() => this.#endGroup(action.program));
      case 'stopProgram':
        return this.#reaperAfter(world.between(0, 3_000), () => this.#endGroup(action.program));
      case 'start':
        return this.#tellReaper(() => this.#startGroup(action.program, action.start));
    }
  }

  /** The pipe keeps the order, because the latency is the same for all; a frozen process writes later. */
  #tellReaper(task: () => void): void {
    this.later(3, () => this.#reaperAfter(1, task));
  }

  #reapAt(deadlineMs: number): void {
    const waitMs = deadlineMs - this.#world.clockOf(this.machine);
    this.#reaperAfter(Math.max(0, waitMs), () => {
      const nowMs = this.#world.clockOf(this.machine);
      if (nowMs + 0.001 < deadlineMs) return this.#reapAt(deadlineMs); // the machine was suspended
      if (this.#deadlineMs <= nowMs + 0.001 && this.#cluster.without !== 'reaper') this.#reap();
    });
  }

  #reap(): void {
    for (const program of this.state.programs.keys())
      this.#reaperAfter(this.#world.between(0, KILLED_MS), () => this.#endGroup(program));
  }

  #startGroup(program: string, start: number): void {
    const world = this.#world;
    const { groups } = this.machine;
    const isLate = world.clockOf(this.machine) >= this.#deadlineMs;
    if (isLate || !this.isAlive) {
      this.later(1, () => this.handle({ type: 'programGone', program, start, isRefused: false }));
      return;
    }
    if (groups.has(program))
      throw new Violation(`two process groups of ${program} on machine ${this.machine.number}`);
    const group = { owner: this, start };
    groups.set(program, group);
    world.note(() => `${this.name} runs ${program}`);
    world.checkGroups(program);
    const isAble = !this.#cluster.unable.has(`${program} ${this.id}`);
    this.#reaperAfter(world.between(50, 1_500), () => {
      if (groups.get(program) !== group) return;
      if (isAble) this.later(1, () => this.handle({ type: 'started', program, start }));
      else this.#endGroup(program);
    });
  }

  #endGroup(program: string): void {
    const { groups } = this.machine;
    const group = groups.get(program);
    if (group?.owner !== this) return;
    groups.delete(program);
    this.#world.note(() => `${this.name} ended ${program}`);
    this.later(1, () => this.handle({ type: 'programGone', program, start: group.start, isRefused: false }));
  }

  #ping(life: string): void {
    const sentAtMs = this.moment.atMs;
    const connection = this.connection(life);
    const world = this.#world;
    if (connection === 'refused') this.later(1, () => this.handle({ type: 'refused', life }));
    if (connection !== 'open') return;
    this.connect(life, (peer) => {
      if (peer.state.own.life !== life) return;
      const backMs = world.between(1, 10) + Math.max(peer.slowMs, this.slowMs);
      this.later(backMs, () => {
        if (world.isLinked(this.machine, peer.machine)) this.handle({ type: 'answered', life, sentAtMs });
      });
    });
  }

  /** What a new connection to the address of a life meets. */
  connection(life: string): 'open' | 'refused' | 'nothing' {
    const peer = this.processOf(life);
    const { nowMs } = this.#world;
    if (peer === undefined || !this.#world.isLinked(this.machine, peer.machine)) return 'nothing';
    if (peer.machine.asleepUntilMs > nowMs) return 'nothing';
    return peer.isAlive && !peer.isDeaf ? 'open' : 'refused';
  }

  /** Runs in the other process, if there is a connection to it. */
  connect(life: string, task: (peer: SimulatedNode) => void): void {
    const peer = this.processOf(life);
    if (peer && this.connection(life) === 'open') peer.later(this.#world.between(1, 10), () => task(peer));
  }

  /** The process that has, or had, this life. */
  processOf(life: string): SimulatedNode | undefined {
    return this.#cluster.nodes.find(
      ({ state }) => state.own.life === life || state.own.former.includes(life),
    );
  }

  /** What the start of a node finds out on its machine. */
  #reportFormer(lives: readonly LifeRow[]): void {
    for (const { node, life, end } of lives) {
      if (node !== this.id || end?.frees === 'all' || life === this.state.own.life) continue;
      const before = this.processOf(life);
      if (!before || before === this || before.isAlive || before.machine !== this.machine) continue;
      const isCleared = ![...this.machine.groups.values()].some(({ owner }) => owner === before);
      this.handle({ type: 'formerLifeGone', life, isCleared });
    }
  }

  #beat(life: string, row: LifeRow | undefined): boolean {
    if (row !== undefined) this.#world.beatenAtMs.set(life, this.#world.nowMs);
    return replace(this.#world.lives, life, row);
  }

  /** Nothing has changed since it was decided, however late it is carried out; an expired one was silent for all the time. */
  #endOther(life: string, row: LifeRow | undefined, decidedAtMs: number): boolean {
    const { beatenAtMs, nowMs, lives } = this.#world;
    const before = lives.get(life);
    const lastMs = beatenAtMs.get(life) ?? Number.NEGATIVE_INFINITY;
    const isExpired = row?.end?.cause === 'expired' && before?.end === undefined;
    if (row !== undefined && (lastMs > decidedAtMs || (isExpired && nowMs - lastMs < EXPIRY_MS)))
      throw new Violation(`${this.name} ends ${life}, whose last heartbeat was ${nowMs - lastMs} ms ago`);
    return this.#end(life, row);
  }

  #end(life: string, row: LifeRow | undefined): boolean {
    if (row === undefined) return false;
    const isNew = this.#world.lives.get(life)?.end === undefined;
    this.#world.lives.set(life, row);
    this.#world.note(() => `the life ${life} has ended: ${row.end?.cause}, ${row.end?.frees}`);
    this.count(`${row.end?.cause}, frees ${row.end?.frees}`);
    if (isNew) this.#cluster.onEnd(row, this.processOf(life));
    return true;
  }

  #take(program: string, generation: number, life: string): boolean {
    const { programs, lives } = this.#world;
    const before = programs.get(program);
    const row = taken(before, generation, life);
    if (row === undefined) return false;
    const isHeld = before?.life !== undefined && before.life !== life;
    if (isHeld && lives.get(before.life)?.end?.frees !== 'all')
      throw new Violation(`${this.name} takes ${program} from ${before.life}, which has not ended`);
    programs.set(program, row);
    return true;
  }

  operate<Result>(
    apply: () => Result,
    onAnswer: (value: Result) => void,
    onFailure: () => void = () => {},
  ): void {
    const { atMs: sentAtMs } = this.moment;
    this.later(0.1, () =>
      this.#world.operate(this.machine, apply, (result) =>
        this.later(0.1, () => {
          if (result) return onAnswer(result.value);
          this.handle({ type: 'failed', sentAtMs });
          onFailure();
        }),
      ),
    );
  }

  count(what: string): void {
    const { counts } = this.#cluster;
    counts[what] = (counts[what] ?? 0) + 1;
  }

  #draw(): string {
    return `L${this.#cluster.nodes.length}.${this.#world.dice.below(1e9).toString(36)}`;
  }
}
