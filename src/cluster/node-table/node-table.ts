// The nodes of the deployment, from the table of lives. Takes the actions of the rules for this node to the part that
// carries them out. Source: ADR 146, 147.

import type { ClusterCounts } from '../../counts/cluster-counts.ts';
import { OperatorError } from '../../domain/errors/errors.ts';
import { databaseUnavailable } from '../../domain/errors/gateway-errors.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { LIMITS } from '../../domain/limits.ts';
import { RELEASED } from '../../domain/nodes/life.ts';
import {
  gatewayIdOf,
  type NodeLife,
  type ProgramHost,
  runsAnywhere,
  runsProgramsOf,
  type ShownNode,
} from '../../domain/nodes/nodes.ts';
import { decideSession, type SessionDecision } from '../../domain/sessions/session-holder.ts';
import { type Clock, settlesWithin, sleep } from '../../domain/time/clock.ts';
import type {
  NodeStore,
  ProgramStore,
  SettingStore,
  StoredLife,
  StoredProgram,
} from '../../persistence/store.ts';
import type { PeerPings } from '../channel/peer-pings.ts';
import { KEY_SETTING, knowsDeploymentKey, otherKey } from '../deployment-key.ts';
import type { ReachableLife } from '../reachable-life.ts';
import { isAlone, type NodeAction, type NodeState, standings } from '../rules/node-state.ts';
import type { LifeRow } from '../rules/rows.ts';
import { KNOWN_MS, STORE_ANSWER_MS } from '../rules/times.ts';
import { CopiedDatabases } from './copied-databases.ts';
import { DatabaseOpinions } from './database-opinions.ts';
import { KnownLives } from './known-lives.ts';
import { LeaseRunner } from './lease-runner.ts';
import { LifeDoubt } from './life-doubt.ts';
import { LifeReads } from './life-reads.ts';
import { LifeRows, type LifeRowsOptions, memberRowOf, type ReadLife, shownNodeOf } from './life-rows.ts';
import { LifeRunner } from './life-runner.ts';
import { NodeRules } from './node-rules.ts';

const TICK_MS = 500;
/** A database that is only slow answers a read within this time, in ms. */
const UNANSWERED_MS = 7_000;
/** The longest wait of a start for its row, in ms. */
const JOIN_MS = 10_000;
/** The longest wait of a stop, in ms, after which the row is left to expire. */
const STOP_MS = 2_000;

interface NodeTableOptions extends Omit<LifeRowsOptions, 'since'> {
  readonly nodes: NodeStore;
  readonly settings: SettingStore;
  readonly clock: Clock;
  /** The time since the start of the machine, in ms, that of suspensions included. */
  readonly uptime: () => number;
  readonly pings: Pick<PeerPings, 'ping' | 'askThird' | 'askDatabase' | 'keep'>;
  /** Time without use after which a session ends, in ms; then ended lives are deleted, with sessions that were not recovered. */
  readonly sessionIdleMs?: number | undefined;
  /** The programs that any node may run. This node uses them, and runs them unless it `takesNoPrograms`. Default: none. */
  readonly programs?: { readonly store: ProgramStore; readonly host: ProgramHost } | undefined;
  /** Other nodes ended this life, and may recover its sessions, which end here; it goes on under a new one. Never rejects. */
  readonly onNextLife: (life: string) => Promise<void>;
  readonly counts?: ClusterCounts | undefined;
}

/** The table of one gateway, from `join` to `close`. It owns all the parts beside it. */
export class NodeTable {
  /** Whether it knows where shared programs run. */
  readonly knowsPrograms: boolean;
  readonly #options: NodeTableOptions;
  readonly #rules: NodeRules;
  readonly #rows: LifeRows;
  readonly #known = new KnownLives();
  readonly #doubt: LifeDoubt;
  readonly #lives: LifeRunner;
  readonly #programs: LeaseRunner | undefined;
  readonly #opinions: DatabaseOpinions;
  readonly #reads: LifeReads;
  readonly #copies: CopiedDatabases;
  /** The last answer to a read, also a late one. */
  #answeredAtMs = Number.NEGATIVE_INFINITY;
  #stopTicks = (): void => {};
  #onChanged = (): void => {};

  constructor(options: NodeTableOptions) {
    const { own, clock, uptime, programs, takesNoPrograms } = options;
    this.#options = options;
    this.knowsPrograms = programs !== undefined;
    this.#copies = new CopiedDatabases(options);
    this.#reads = new LifeReads(clock, () => this.#read());
    this.#rows = new LifeRows({ ...options, since: new Date(clock.wall()).toISOString() });
    const rules = new NodeRules({
      ...own,
      clock,
      uptime,
      takesNoPrograms,
      onStep: (...step) => this.#onStep(...step),
    });
    this.#rules = rules;
    this.#doubt = new LifeDoubt(own.node, clock, rules);
    const parts = { ...options, rules, known: this.#known };
    this.#lives = new LifeRunner({ ...parts, rows: this.#rows, reads: this.#reads, doubt: this.#doubt });
    this.#programs =
      programs &&
      new LeaseRunner({ ...parts, node: own.node, store: programs.store, programs: programs.host });
    // It writes, but changes nothing: a server that is read-only answers questions, and no node can take a program.
    const check = () => options.settings.touch(KEY_SETTING);
    this.#opinions = new DatabaseOpinions({ ...parts, check });
    programs?.host.onChanged(() => void this.#reads.again());
  }

  /** The present life of this node. */
  get life(): string {
    return this.#rules.life;
  }

  /**
   * True while this node is cut off from the database: others may end this life and take over its sessions, so it opens
   * none.
   */
  get isCutOff(): boolean {
    const nowMs = this.#options.clock.now();
    return nowMs - this.#answeredAtMs >= UNANSWERED_MS && isAlone(this.#rules.state, nowMs);
  }

  /**
   * The life that serves a stored session. Throws DATABASE_UNAVAILABLE when its holder is not known and the members cannot
   * be read.
   */
  async decideSession(row: NodeLife): Promise<SessionDecision> {
    if (row.life !== RELEASED) await this.#lookUp(row.life, () => this.#reads.again());
    const { node } = this.#options.own;
    const lifeOf = (life: string) => {
      const known = this.#known.get(life);
      return known === undefined || known.isMember ? known?.stored : 'foreign';
    };
    return decideSession(row, { node, life: this.life, lifeOf });
  }

  /** A live member that is not drained, the same one for a session each time. Undefined while the rows cannot be read. */
  successorOf(key: string): string | undefined {
    if (!this.#reads.isCurrent) return undefined;
    const lives = [...this.#ready.keys()].sort();
    return lives[Number.parseInt(key.slice(0, 8), 16) % lives.length];
  }

  /**
   * Whether this life may still store sessions. One that is not known has just begun, or was never there: it is looked
   * for, once a second at most.
   */
  async mayBeStoredLater(life: string): Promise<boolean> {
    if (life === this.life || this.#rules.state.own.former.includes(life)) return false;
    await this.#lookUp(life, () => this.#reads.soon());
    return this.find(life) !== undefined || this.#known.mayStore(life, this.#options.clock.now());
  }

  readonly hasEnded = (life: string) => this.#known.hasEnded(life, this.#options.clock.now());

  /**
   * Whether the member with this life is to get new sessions of clients that came here. A worker of the same gateway is
   * not: each core has its own.
   */
  takesSessions(life: string): boolean {
    const node = this.#ready.get(life);
    return node !== undefined && gatewayIdOf(node) !== gatewayIdOf(this.#options.own.node);
  }

  /** Whether the member with this life does not answer this node, and its life goes on. */
  isSilent(life: string): boolean {
    return standings(this.#rules.state).get(life) === 'silent';
  }

  /** Lives that may open sessions that this node cannot, while it is cut off from the database or one of them is silent. */
  get openers(): readonly string[] {
    const standing = standings(this.#rules.state);
    const isApart = this.isCutOff || [...standing.values()].includes('silent');
    return isApart ? [...standing.keys()].filter((life) => this.takesSessions(life)) : [];
  }

  /** Asks a member that refuses connections at once whether it is still there. */
  readonly suspect = (life: string): void => this.#lives.ping(life);

  /** A promise while it is in doubt whether this life goes on, see LifeDoubt.untilLifeKnown; undefined at nearly all times. */
  untilLifeKnown(): Promise<void> | undefined {
    return this.#doubt.untilLifeKnown();
  }

  /** Reads this life again, which another member does not know. Resolves or rejects as `untilLifeKnown`. */
  recheck(): Promise<void> {
    return this.#reads.again().then(() => this.untilLifeKnown());
  }

  /** Calls the listener after each change of the members. One listener. */
  onChanged(listener: () => void): void {
    this.#onChanged = listener;
  }

  find(life: string): ReachableLife | undefined {
    return this.#known.find(life);
  }

  /** The other node that runs this program or reaches its container; undefined while there is none. */
  runsOn({ nodeId, serverId }: Pick<InstanceDefinition, 'nodeId' | 'serverId'>): ReachableLife | undefined {
    if (runsAnywhere({ nodeId })) {
      const { life } = this.#rules.state.programs.get(serverId)?.row ?? {};
      return life === undefined || life === this.life ? undefined : this.find(life);
    }
    const runners = this.#known.all.filter(({ stored }) => runsProgramsOf(stored.node, nodeId));
    return runners.map(({ stored }) => this.find(stored.life)).find((peer) => peer !== undefined);
  }

  /** Reads the members, unless that was less than a second ago. Never rejects. */
  refresh(): Promise<void> {
    return this.#reads.unlessRecent();
  }

  /** Reads the members, beginning after this call. Never rejects. */
  readAgain(): Promise<void> {
    return this.#reads.again();
  }

  /** Takes the report of the supervisor of this process about its other processes. Never rejects. */
  async seeProcesses(running: readonly string[], gone: string | undefined): Promise<void> {
    this.#rules.handle({ type: 'processes', running, gone });
    if (gone !== undefined) await this.#reads.again();
  }

  async isRefused(life: string): Promise<boolean> {
    const { clock, pings } = this.#options;
    const peer = this.find(life);
    if (peer === undefined) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    pings.ping(peer, (result) => resolve(result === 'refused'));
    return (await settlesWithin(promise, STORE_ANSWER_MS, clock)) && promise;
  }

  /** Whether the database is away, for the member with this life. Undefined: this node cannot say. Never rejects. */
  isDatabaseAway(life: string): Promise<boolean | undefined> {
    const noteUnknown = (): unknown => this.#isKnown(life) || this.#copies.noteAsked();
    void this.#lookUp(life, () => this.#reads.soon()).then(noteUnknown, () => {});
    return this.#opinions.isAway(life);
  }

  /** All lives that have a row, with the present one of this node first. */
  list(): ShownNode[] {
    const standing = standings(this.#rules.state);
    const others = this.#known.all.filter(({ stored }) => stored.life !== this.life);
    const shown = others.map((known) => shownNodeOf(known, standing.get(known.stored.life)));
    return this.#copies.withCopies([this.#rows.ownShownNode(this.life), ...shown]);
  }

  /** Throws OperatorError when the row of this life cannot be written within 10 s. */
  async join(): Promise<void> {
    const { clock, settings, secrets, own, onNotice } = this.#options;
    await this.#reads.now();
    const isElsewhere = this.#known.hasForeign(own.node);
    if (!(await knowsDeploymentKey(settings, { secrets, isElsewhere }))) onNotice(otherKey(own.node));
    this.#rules.handle({ type: 'tick' });
    this.#stopTicks = clock.background.every(TICK_MS, () => this.#rules.handle({ type: 'tick' }));
    if (await settlesWithin(this.#lives.joined, JOIN_MS, clock)) return;
    this.#stopTicks();
    throw new OperatorError(`the row of this node could not be written within ${JOIN_MS / 1_000} s`);
  }

  /** Ends the own life: others claim its sessions at once. */
  async close(): Promise<void> {
    if (this.#rules.isStopped) return;
    this.#stopTicks();
    this.#rules.handle({ type: 'stop' });
    await settlesWithin(this.#lives.stopped, STOP_MS, this.#options.clock);
  }

  /**
   * Closes as `close` does, and waits until the other members have read that this life is over, so that they send it no more
   * requests.
   */
  async leave(untilRead: () => Promise<unknown> = () => sleep(this.#options.clock, KNOWN_MS)): Promise<void> {
    const hasOthers = this.#known.all.some(({ stored: { life } }) => life !== this.life && this.find(life));
    await this.close();
    if (hasOthers) await untilRead();
  }

  #onStep(before: NodeState, actions: readonly NodeAction[]): void {
    const { state } = this.#rules;
    if (state.programs !== before.programs) this.#programs?.place(before, state);
    for (const action of actions) this.#act(action);
    if (!this.#rules.isStopped) this.#doubt.settle();
  }

  #act(action: NodeAction): void {
    if ('program' in action) this.#programs?.act(action);
    else if (action.type === 'killPrograms') this.#programs?.killAll();
    else if (action.type === 'lease') this.#options.programs?.host.lease(action.untilMs);
    else if (action.type === 'read')
      void (this.#rules.state.own.stage === 'joining' ? this.#reads.again() : this.#reads.now());
    else if (action.type === 'ask' || action.type === 'say' || action.type === 'check')
      this.#opinions.act(action);
    else this.#lives.act(action);
  }

  /** The live members that are not drained: their nodes by life. */
  get #ready(): ReadonlyMap<string, string> {
    const standing = standings(this.#rules.state);
    const isReady = ({ stored, report }: ReadLife) =>
      standing.get(stored.life) === 'live' && report?.is_draining === false;
    const ready = this.#known.all.filter(isReady);
    return new Map(ready.map(({ stored }) => [stored.life, stored.node]));
  }

  #isKnown(life: string): boolean {
    return life === this.life || this.#known.get(life) !== undefined;
  }

  /** Reads the table if the life is not known. Throws DATABASE_UNAVAILABLE when it cannot be read. */
  async #lookUp(life: string, read: () => Promise<void>): Promise<void> {
    if (this.#isKnown(life)) return;
    await read();
    if (!this.#reads.isCurrent) throw databaseUnavailable(new Error('the members cannot be read'));
  }

  async #read(): Promise<(() => void) | undefined> {
    const { nodes, clock } = this.#options;
    let takeOver: (() => void) | undefined;
    const sentAtMs = clock.now();
    const reading = async (): Promise<void> => {
      const leases = this.#programs?.isUsed ? await this.#programs.read() : [];
      const rows = await nodes.list();
      this.#answeredAtMs = clock.now();
      takeOver = () => this.#takeOver(rows, leases);
    };
    await settlesWithin(reading(), STORE_ANSWER_MS, clock);
    if (takeOver === undefined) this.#rules.handle({ type: 'failed', sentAtMs });
    return takeOver;
  }

  #takeOver(rows: readonly StoredLife[], leases: readonly StoredProgram[]): void {
    const { nodes, clock, pings, report, sessionIdleMs = LIMITS.sessionIdleMs } = this.#options;
    this.#known.replace(this.#rows.read(rows));
    const lives = this.#known.all.flatMap((known) => (known.isMember ? memberRowOf(known) : []));
    this.#rules.handle({ type: 'read', rows: { programs: this.#programs?.rowsOf(leases) ?? [], lives } });
    const { isDraining } = report();
    if (isDraining !== this.#rules.state.own.isDraining) this.#rules.handle({ type: 'drain', isDraining });
    pings.keep(new Set(lives.flatMap(({ life, end }) => (end === undefined ? [life] : []))));
    this.#reportFormer(lives);
    const old = this.#known.old(clock.now(), sessionIdleMs);
    this.#copies.look(this.#known);
    if (old.length > 0) this.#rules.operate(nodes.delete(old));
    this.#onChanged();
    if (this.#rules.state.own.stage === 'joining') this.#rules.handle({ type: 'tick' });
  }

  /**
   * The lock of the node (ADR 47) belongs to this process: an earlier one has released it, is certainly gone, or
   * has not changed the lock for 10 s. The programs of one on this machine may be ending.
   */
  #reportFormer(lives: readonly LifeRow[]): void {
    for (const { life, node, end } of lives)
      if (node === this.#options.own.node && life !== this.life && end?.frees !== 'all')
        this.#rules.handle({
          type: 'formerLifeGone',
          life,
          isCleared: this.#options.programs?.host.mayFormerRun !== true,
        });
  }
}
