// The sessions of a process of a simulated cluster: it opens, serves, forwards and claims them by the rule of their holders.

import type { NodeState } from '../../../src/cluster/rules/node-state.ts';
import type { LifeRow } from '../../../src/cluster/rules/rows.ts';
import { RELEASED } from '../../../src/domain/nodes/life.ts';
import { decideSession } from '../../../src/domain/sessions/session-holder.ts';
import { replace, Violation, type World } from './simulated-world.ts';
import { claimed, fenced, type SessionRow } from './updates.ts';

interface OwnedSession {
  readonly generation: number;
  isUnsafe: boolean;
}

/** A process as its sessions see it. */
export interface ServingNode {
  readonly name: string;
  readonly state: NodeState;
  readonly isStopping: boolean;
  readonly sessions: SimulatedSessions;
  /** Later in this process; when it is frozen, once it continues. */
  later(waitMs: number, task: () => void): void;
  /** An operation of the database. */
  operate<Result>(apply: () => Result, onAnswer: (value: Result) => void, onFailure?: () => void): void;
  /** What a new connection to the address of a life meets. */
  connection(life: string): 'open' | 'refused' | 'nothing';
  /** Runs in the other process, if there is a connection to it. */
  connect(life: string, task: () => void): void;
  /** The process that has, or had, this life. */
  processOf(life: string): ServingNode | undefined;
  count(what: string): void;
}

/** What the nodes of one cluster have in common. */
interface Shared {
  readonly world: World;
  /** A part that is missing, to show that the invariants see it. */
  readonly without: string | undefined;
}

export class SimulatedSessions {
  readonly #node: ServingNode;
  readonly #cluster: Shared;
  readonly #owned = new Map<string, OwnedSession>();

  constructor(node: ServingNode, cluster: Shared) {
    this.#node = node;
    this.#cluster = cluster;
  }

  get #world(): World {
    return this.#cluster.world;
  }

  clear(): void {
    this.#owned.clear();
  }

  /** A client initializes here. */
  open(session: string): void {
    const { life, stage } = this.#node.state.own;
    if (stage !== 'living' || this.#node.isStopping) return;
    const { sessions } = this.#world;
    this.#node.operate(
      () => {
        if (!sessions.has(session)) sessions.set(session, { session, life, generation: 1, isUnsafe: false });
        return sessions.get(session)?.life === life;
      },
      (isOurs) => {
        if (!isOurs || this.#owned.has(session)) return;
        if (this.#node.state.own.life === life && this.#node.state.own.stage === 'living')
          this.#owned.set(session, { generation: 1, isUnsafe: false });
      },
    );
  }

  /** A request of a client: `reply` gets the outcome once, if the process lives. */
  request(session: string, isUnsafe: boolean, reply: (outcome: string) => void, hops = 0): void {
    const { life, stage } = this.#node.state.own;
    if (stage !== 'living' || hops > 3) {
      reply('503');
      return;
    }
    const owned = this.#owned.get(session);
    if (owned) {
      this.#serve(session, owned, isUnsafe, reply, hops);
      return;
    }
    const world = this.#world;
    this.#node.operate(
      () => ({ row: world.sessions.get(session), lives: new Map(world.lives) }),
      ({ row, lives }) => {
        if (this.#node.state.own.life !== life || this.#node.state.own.stage !== 'living') {
          reply('503');
          return;
        }
        if (this.#owned.has(session)) {
          this.request(session, isUnsafe, reply, hops + 1);
          return;
        }
        this.#decide(row, lives, isUnsafe, reply, hops);
      },
      () => reply('503'),
    );
  }

  #decide(
    row: SessionRow | undefined,
    lives: ReadonlyMap<string, LifeRow>,
    isUnsafe: boolean,
    reply: (outcome: string) => void,
    hops: number,
  ): void {
    const { life } = this.#node.state.own;
    const known = (owner: string): LifeRow | undefined =>
      this.#node.state.watches.get(owner)?.row ?? lives.get(owner);
    if (row === undefined) {
      reply('404');
      return;
    }
    const { session } = row;
    const { node } = this.#node.state.own;
    const decision = decideSession(
      { node: 'another', life: row.life ?? RELEASED },
      { node, life, lifeOf: known },
    );
    if (decision.do === 'end') throw new Violation(`404 for the session ${session}: ${decision.reason}`);
    if (decision.do === 'recover') {
      this.#owned.set(session, { generation: row.generation, isUnsafe: row.isUnsafe });
      this.request(session, isUnsafe, reply, hops + 1);
      return;
    }
    if (decision.do === 'forward') {
      const peer = this.#node.processOf(decision.life);
      if (peer?.state.own.life !== decision.life || this.#node.connection(decision.life) !== 'open') {
        reply('503');
        return;
      }
      this.#node.connect(decision.life, () => peer.sessions.request(session, isUnsafe, reply, hops + 1));
      return;
    }
    if (row.isUnsafe) {
      reply('404'); // it may not move
      return;
    }
    this.#node.operate(
      () => this.#claim(row, life),
      (isOurs) => {
        if (this.#node.state.own.life !== life || this.#node.state.own.stage !== 'living') {
          reply('503');
          return;
        }
        if (isOurs && !this.#owned.has(session))
          this.#owned.set(session, { generation: row.generation + 1, isUnsafe: row.isUnsafe });
        this.request(session, isUnsafe, reply, hops + 1);
      },
      () => reply('503'),
    );
  }

  #claim(read: SessionRow, life: string): boolean {
    const { sessions, lives } = this.#world;
    const stored = sessions.get(read.session);
    const isUnsafe = (this.#cluster.without === 'mark' ? stored : read)?.isUnsafe === true;
    const row = claimed(stored, { ...read, isUnsafe }, life);
    if (row === undefined) return false;
    if (row.isUnsafe) throw new Violation(`${this.#node.name} claims ${read.session} after an unsafe call`);
    if (read.life !== undefined && lives.get(read.life)?.end === undefined)
      throw new Violation(`${this.#node.name} claims ${read.session} of ${read.life}, which has not ended`);
    this.#world.note(() => `${this.#node.name} claims ${read.session}`);
    this.#node.count('claim');
    return replace(sessions, read.session, row);
  }

  #serve(
    session: string,
    owned: OwnedSession,
    isUnsafe: boolean,
    reply: (outcome: string) => void,
    hops: number,
  ): void {
    const { life } = this.#node.state.own;
    const leave = (): void => {
      if (this.#owned.get(session) !== owned) {
        reply('503');
        return;
      }
      if (isUnsafe) this.#leave(session, owned, life);
      reply('served');
    };
    if (!isUnsafe || owned.isUnsafe || this.#cluster.without === 'fence') {
      leave();
      return;
    }
    const { sessions } = this.#world;
    this.#node.operate(
      () => replace(sessions, session, fenced(sessions.get(session), owned.generation, life)),
      (isOurs) => {
        if (isOurs) {
          owned.isUnsafe = true;
          leave();
          return;
        }
        if (this.#owned.get(session) === owned) this.#owned.delete(session);
        this.request(session, isUnsafe, reply, hops + 1);
      },
      () => reply('503'),
    );
  }

  /** Nothing unsafe leaves after a claim. The write to the backend comes later, perhaps after a freeze. */
  #leave(session: string, { generation }: OwnedSession, life: string): void {
    this.#node.later(1, () => {
      const row = this.#world.sessions.get(session);
      this.#node.count('unsafe call');
      if (row?.life !== life || row.generation !== generation)
        throw new Violation(`an unsafe call of ${session} leaves ${this.#node.name} after a claim`);
    });
  }
}
