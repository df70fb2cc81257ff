// The other nodes of the deployment, for answers that are about all of it: asks each of them the question of a client,
// as the client of this node that it is, with its rights.

import Type from 'typebox';
import { askPeer, cannotBeAsked, peerAnswer } from '../../cluster/channel/ask-peer.ts';
import type { Peers } from '../../cluster/channel/peers.ts';
import { mayDo, type Principal } from '../../domain/accounts/principal.ts';
import { hasAllTemplates, rightsKey } from '../../domain/accounts/rights.ts';
import type { Shape } from '../../domain/errors/validation.ts';
import { jsonIn } from '../../domain/json/json.ts';
import { NO_BYTES } from '../../domain/memory/bounded-bytes.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import { memberNodes, runsProgramsOf, type ShownNode } from '../../domain/nodes/nodes.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';
import { type BytesReply, bytes, noContent } from '../replies/reply.ts';
import type { HttpRequest } from '../request.ts';

/** Field of answers about the deployment. */
export const MissingNodes = Type.Optional(
  Type.Array(Type.String(), {
    examples: [['node-b']],
    description:
      'Only if there are any: nodes that did not answer within a second, and whose part is missing',
  }),
);

/** The field `partial` of an answer, if the part of any node is missing in it. */
export function partialField(partial: readonly string[]): { partial?: string[] } {
  return partial.length === 0 ? {} : { partial: [...partial] };
}

/** The longest wait for the other nodes, in ms. */
const WAIT_MS = 1_000;
/** The same question is sent to a node once in this time, in ms, however many callers ask. */
const SHARED_MS = 1_000;
/** Questions that are remembered for this time. */
const MAX_REMEMBERED = 256;
/** Questions that one node has not answered yet. Over it: it counts as one that does not answer. */
const MAX_ASKED = 32;
/** Longer answers are refused: some 10,000 instances. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** Bytes of an answer that count as one task. */
const TASK_BYTES = 32 * 1024;

/** The most bytes of an answer to a command: one record. */
const MAX_COMMAND_BYTES = 1024 * 1024;

export interface Question<T> {
  /** Path and query. */
  readonly target: string;
  /** The caller: each node gives the part that the caller may see. */
  readonly principal: Principal;
  /** Shape of an answer. Others count as none: the node has another version. */
  readonly shape: Pick<Shape<T>, 'accepts'>;
  /** True: an answer of the last second is not enough. */
  readonly isFresh?: boolean;
}

/** The answers of the other nodes. */
interface NodeAnswers<T> {
  /** The answers by id of the node. */
  readonly answers: ReadonlyMap<string, T>;
  /** Ids of the nodes that did not answer. */
  readonly partial: readonly string[];
}

const NONE: NodeAnswers<never> = { answers: new Map<string, never>(), partial: [] };

interface OtherMembersOptions extends Timing {
  /** See Services. */
  readonly nodes: () => readonly ShownNode[];
  readonly peers?: Pick<Peers, 'ofLife'> | undefined;
}

interface ClientCommand {
  readonly request: HttpRequest;
  readonly principal: Principal;
}

/** Asks one other node, or all of them at once. A node that is asked answers for itself alone. Source: ADR 172. */
export class OtherMembers {
  readonly #options: OtherMembersOptions;
  /** The recent questions by life of the node, rights of the caller, and target. */
  readonly #asked = new LruMap<{ readonly atMs: number; readonly answer: Promise<unknown> }>(MAX_REMEMBERED);
  /** Questions under way, by life. */
  readonly #open = new Map<string, number>();

  constructor(options: OtherMembersOptions) {
    this.#options = options;
  }

  /** Id of this node. */
  get ownId(): string {
    return this.#options.nodes()[0]?.id ?? '';
  }

  /** True when no other node is a member. */
  get isAlone(): boolean {
    return this.list().length === 0;
  }

  /** Asks all other nodes. Never rejects; no promise where there are none. */
  ask<T>(question: Question<T>): NodeAnswers<T> | Promise<NodeAnswers<T>> {
    const others = this.list();
    return others.length === 0 ? NONE : this.#askAll(others, question);
  }

  /**
   * Sends the request of a client to one other node, as it is but without a body, and returns its answer.
   * Throws NODE_UNAVAILABLE. Unlike a question it may change something there, so it has no time limit but that of
   * requests to a silent node, unless there is one.
   */
  async send(
    { id, life }: Pick<ShownNode, 'id' | 'life'>,
    method: string,
    { request, principal }: ClientCommand,
    maxMs?: number,
  ): Promise<BytesReply> {
    const peer = this.#options.peers?.ofLife(life);
    if (peer === undefined) throw cannotBeAsked(id, 'requests are not forwarded (cluster.forward)');
    const { id: requestId, address, target, headers } = request;
    const forwarded = {
      caller: { principal, requestId, address },
      method,
      target,
      headers,
      body: NO_BYTES,
      isStream: false,
      isRepeatable: () => true,
    };
    const late = new AbortController();
    const giveUp = () => late.abort(cannotBeAsked(id, 'it does not answer'));
    const stop = maxMs === undefined ? () => {} : this.#options.clock.alarm(maxMs, giveUp);
    const signal = AbortSignal.any([request.signal, late.signal]);
    try {
      const { status, body } = await peerAnswer(peer, forwarded, { maxBytes: MAX_COMMAND_BYTES, signal });
      return status === 204 ? noContent() : bytes(status, body);
    } finally {
      stop();
    }
  }

  /**
   * Sends the request of a client to all other members. Resolves with the ids of the members that did not carry it out within a
   * second. Never rejects.
   */
  async sendToAll(method: string, input: ClientCommand): Promise<readonly string[]> {
    const sent = this.list().map(async (node) => {
      if (node.state === 'silent') return [node.id];
      try {
        const { status } = await this.send(node, method, input, WAIT_MS);
        return status < 300 ? [] : [node.id];
      } catch {
        return [node.id]; // the answer names it
      }
    });
    return (await Promise.all(sent)).flat().sort();
  }

  /** The life of another node, to send it something. Undefined: it is not a member, or has ended. */
  member(id: string): ShownNode | undefined {
    return this.list().find((node) => node.id === id);
  }

  /** The other node that runs the programs of this node or gateway. Undefined: it is this node, or no member. */
  runnerOf(nodeId: string): ShownNode | undefined {
    return this.list().find(({ id }) => runsProgramsOf(id, nodeId));
  }

  async #askAll<T>(others: readonly ShownNode[], question: Question<T>): Promise<NodeAnswers<T>> {
    const answers = new Map<string, T>();
    const partial = new Set<string>();
    await Promise.all(
      others.map(async (node) => {
        const answer = await this.#answerOf(node, question);
        if (answer === undefined) partial.add(node.id);
        else answers.set(node.id, answer as T); // it was checked: a target has one shape
      }),
    );
    return { answers, partial: [...partial].sort() };
  }

  /** The lives of other nodes that are members. */
  list(): ShownNode[] {
    const [, ...others] = this.#options.nodes();
    return memberNodes(others);
  }

  /**
   * Asks the node; undefined without an answer that the shape of the question accepts. Callers that see everything share one
   * answer.
   */
  #answerOf(
    { life, state }: ShownNode,
    { target, principal, shape, isFresh = false }: Question<unknown>,
  ): Promise<unknown> | undefined {
    const peer = state === 'silent' ? undefined : this.#options.peers?.ofLife(life);
    if (peer === undefined) return undefined;
    const key = `${life} ${rightsOf(principal)} ${target}`;
    const known = this.#asked.get(key);
    const nowMs = this.#options.clock.now();
    if (known !== undefined && !isFresh && nowMs - known.atMs < SHARED_MS) return known.answer;
    const open = this.#open.get(life) ?? 0;
    if (open >= MAX_ASKED) return undefined;
    this.#open.set(life, open + 1);
    const { clock } = this.#options;
    const question = { principal, target, waitMs: WAIT_MS, maxBytes: MAX_ANSWER_BYTES, clock };
    const body = askPeer(peer, question).finally(() => this.#close(life));
    const answer = this.#accepted(body, shape);
    const asked = { atMs: nowMs, answer };
    this.#asked.set(key, asked);
    this.#options.clock.background.alarm(
      SHARED_MS,
      () => this.#asked.get(key) === asked && this.#asked.delete(key),
    );
    return answer;
  }

  async #accepted(asked: Promise<Buffer | undefined>, shape: Question<unknown>['shape']): Promise<unknown> {
    const body = await asked;
    if (body === undefined) return undefined;
    const { scheduler } = this.#options;
    const tasks = Math.max(1, body.length / TASK_BYTES);
    await scheduler.turn(tasks);
    const value = jsonIn(body.toString());
    await scheduler.turn(tasks);
    return shape.accepts(value) ? value : undefined;
  }

  #close(life: string): void {
    const open = (this.#open.get(life) ?? 1) - 1;
    if (open === 0) this.#open.delete(life);
    else this.#open.set(life, open);
  }
}

function rightsOf(principal: Principal): string {
  const { id, scopes } = principal;
  if (mayDo(principal, ['admin']) && hasAllTemplates(principal)) return 'all';
  return JSON.stringify([id, [...scopes], rightsKey(principal)]);
}
