// Carries out the rules about lives: writes the row of this node and its heartbeats, pings the other members, ends
// lives that are over, goes on under a new one, and ends the own life when the node stops. The rules decide
// (rules/own-life.ts, rules/life-watch.ts). Source: ADR 146.

import type { ClusterCounts } from '../../counts/cluster-counts.ts';
import { newLife } from '../../domain/nodes/life.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { NodeStore } from '../../persistence/store.ts';
import type { PeerPings } from '../channel/peer-pings.ts';
import type { ReachableLife } from '../reachable-life.ts';
import type { NodeAction } from '../rules/node-state.ts';
import type { KnownLives } from './known-lives.ts';
import type { LifeDoubt } from './life-doubt.ts';
import type { LifeReads } from './life-reads.ts';
import type { LifeRows } from './life-rows.ts';
import type { NodeRules } from './node-rules.ts';

/** The reasons why a life was ended, as clauses. */
const END_REASONS = {
  refused: 'its address refuses connections',
  expired: 'it sent no heartbeat for 10 s',
  restarted: 'its process has ended',
  stopped: 'it stopped',
} as const;

type RunnerAction = Exclude<
  NodeAction,
  | { readonly type: 'read' | 'lease' | 'killPrograms' | 'ask' | 'say' | 'check' }
  | { readonly program: string }
>;
type ActionOf<Type extends RunnerAction['type']> = Extract<RunnerAction, { readonly type: Type }>;

interface LifeRunnerOptions {
  readonly rules: NodeRules;
  readonly known: KnownLives;
  readonly reads: LifeReads;
  readonly doubt: LifeDoubt;
  readonly nodes: Pick<NodeStore, 'insert' | 'beat' | 'end'>;
  readonly rows: Pick<LifeRows, 'storedOf' | 'reportOf'>;
  readonly pings: Pick<PeerPings, 'ping' | 'askThird'>;
  readonly clock: Clock;
  readonly counts?: ClusterCounts | undefined;
  readonly onNotice: (line: string) => void;
  /** Other nodes ended the life of this node, which goes on under this one. Never rejects. */
  readonly onNextLife: (life: string) => Promise<void>;
}

/** Carries out the actions about lives; the rules learn the outcome of each. */
export class LifeRunner {
  readonly #options: LifeRunnerOptions;
  readonly #joined = Promise.withResolvers<void>();
  /** The life after the end of the present one by others. */
  #nextLife = newLife();
  #stopped: Promise<unknown> = Promise.resolve();

  constructor(options: LifeRunnerOptions) {
    this.#options = options;
  }

  /** Resolves when the first row of this node was written. Never rejects. */
  get joined(): Promise<void> {
    return this.#joined.promise;
  }

  /** Settles after the action `stop`, when the end of the own life is written, or cannot be. */
  get stopped(): Promise<unknown> {
    return this.#stopped;
  }

  /** Asks the member with this life at once whether it is still there. */
  ping(life: string): void {
    const { clock, pings, rules, reads } = this.#options;
    const peer = this.#find(life);
    if (peer === undefined) return;
    const sentAtMs = clock.now();
    pings.ping(peer, (result) => {
      if (result === 'answered') rules.handle({ type: 'answered', life, sentAtMs });
      else if (result === 'refused') rules.handle({ type: 'refused', life });
      else void reads.unlessRecent(); // it may go on under another life
    });
  }

  act(action: RunnerAction): void {
    if (action.type === 'join') this.#join(action);
    else if (action.type === 'heartbeat') this.#beat(action);
    else if (action.type === 'end') this.#end(action);
    else if (action.type === 'ping') this.#pingAfter(action);
    else if (action.type === 'askThird') this.#askThird(action);
    else if (action.type === 'dropSessions') this.#dropSessions();
    else if (action.type === 'renew') this.#renew();
    else if (action.type === 'stop') this.#stop(action);
    else action satisfies never;
  }

  #join({ row, sent }: ActionOf<'join'>): void {
    const { nodes, rows, rules } = this.#options;
    const inserting = nodes.insert(rows.storedOf(row)).then(() => {
      // Counts even after the time limit: the row exists.
      rules.handle({ type: 'confirmed', life: row.life, sent });
      this.#joined.resolve();
    });
    rules.operate(inserting);
  }

  #beat({ life, sees, sent }: ActionOf<'heartbeat'>): void {
    const { nodes, rows, rules } = this.#options;
    rules.operate(nodes.beat(life, rows.reportOf(sees)), (isBeaten) =>
      rules.handle(isBeaten ? { type: 'confirmed', life, sent } : { type: 'heartbeatMissed', life }),
    );
  }

  #end({ life, counter, end }: ActionOf<'end'>): void {
    const { nodes, rules, known, reads, counts, onNotice } = this.#options;
    const isFirst = known.rowOf(life)?.end === undefined; // its programs may be freed later
    rules.operate(nodes.end(life, counter, end), (isEnded) => {
      void reads.again();
      if (isEnded && isFirst) counts?.endedLife(end.cause);
      if (!isEnded) rules.handle({ type: 'endNotWritten', life });
      else if (end.frees === 'sessions' || end.cause === 'expired')
        onNotice(`the node "${known.rowOf(life)?.node}" is gone: ${END_REASONS[end.cause]}`);
    });
  }

  #stop({ life }: ActionOf<'stop'>): void {
    this.#stopped = this.#options.nodes.end(life, undefined, { cause: 'stopped', frees: 'all' });
  }

  #pingAfter({ life, afterMs }: ActionOf<'ping'>): void {
    if (afterMs === 0) this.ping(life);
    else this.#options.clock.background.alarm(afterMs, () => this.ping(life));
  }

  #askThird({ life, third }: ActionOf<'askThird'>): void {
    const { pings, rules } = this.#options;
    const peer = this.#find(third);
    if (peer === undefined) return;
    pings.askThird(peer, life, (isRefused) => rules.handle({ type: 'thirdAnswered', life, isRefused }));
  }

  /** The member with this life, unless this node has stopped. */
  #find(life: string): ReachableLife | undefined {
    const { rules, known } = this.#options;
    return rules.isStopped ? undefined : known.find(life);
  }

  /** Draws the next life, and ends the sessions of the present one. */
  #dropSessions(): void {
    const { counts, onNextLife, doubt, onNotice, rules } = this.#options;
    this.#nextLife = newLife();
    if (counts) counts.livesLost += 1;
    doubt.untilDropped(onNextLife(this.#nextLife));
    onNotice(
      'other nodes considered this node ended, and may have taken over its sessions; it continues under a new life',
    );
    queueMicrotask(() => rules.handle({ type: 'tick' }));
  }

  #renew(): void {
    const { rules } = this.#options;
    rules.handle({ type: 'renewed', life: this.#nextLife });
    rules.handle({ type: 'tick' }); // requests wait for the new life
  }
}
