// The way to one instance of another node: sends each request to its node as the caller of the request, with rights to the
// template alone, and gives the frames of the answer to a sink. peer-transport.ts makes conversations of them. Source: ADR 170.

import type { Principal } from '../../../domain/accounts/principal.ts';
import { ANSWERS_HOLD_TOO_MUCH, backendUnavailable } from '../../../domain/errors/backend-errors.ts';
import { type Delivered, type GatewayError, reasonOf } from '../../../domain/errors/errors.ts';
import type { InstanceDefinition } from '../../../domain/instances/instance.ts';
import { definedFields } from '../../../domain/json/json.ts';
import type { Handshake } from '../../../domain/mcp/mcp.ts';
import { type InstanceHeldBytes, UNCOUNTED_BYTES } from '../../../domain/memory/held-bytes.ts';
import { LruMap } from '../../../domain/memory/lru-map.ts';
import type { ForwardedAnswer, ForwardedRequest, Forwarding } from '../../../domain/nodes/forwarding.ts';
import type { PeerClient } from '../peer-client.ts';
import {
  FrameReader,
  type OpenedConversation,
  type PeerConversationRequest,
  type PeerFrame,
} from './peer-frames.ts';

/** The most callers of one instance whose principals are kept, so that their tokens are made once. */
const MAX_CALLERS = 1_000;

export interface PeerLinkOptions {
  readonly definition: Pick<InstanceDefinition, 'template' | 'id'>;
  readonly client: PeerClient;
  /** Changed with each opening. Default: each opening finds another backend. */
  readonly last?: LastBackend | undefined;
  /** Counts incomplete answers. Default: they are not counted. */
  readonly answers?: InstanceHeldBytes | undefined;
}

/** The shared conversation of the backend that was found last; `handshake` is the same object as long as that goes on. */
export interface LastBackend {
  name?: string;
  handshake?: Handshake;
}

interface SendOptions extends Partial<Pick<ForwardedRequest, 'isStream' | 'mayShare' | 'mayBeSent'>> {
  readonly requestId?: string | undefined;
}

/** The link to one instance: it sends requests of its conversations to its node, and keeps what they share. */
export class PeerLink {
  readonly #options: PeerLinkOptions;
  readonly #linkId = crypto.randomUUID();
  readonly #principals = new LruMap<Principal>(MAX_CALLERS);

  constructor(options: PeerLinkOptions) {
    this.#options = options;
  }

  get target(): Pick<PeerConversationRequest, 'template' | 'id' | 'way'> {
    const { template, id } = this.#options.definition;
    return { template, id, way: this.#linkId };
  }

  /** The result of the handshake. */
  handshakeOf({ backend, peer: handshake }: OpenedConversation): Handshake {
    const { last } = this.#options;
    if (backend === undefined || last === undefined) return handshake;
    if (last.name === backend && last.handshake !== undefined) return last.handshake;
    Object.assign(last, { name: backend, handshake });
    return handshake;
  }

  /** Sends one request. `ended` of the sink is called once, unless it is cancelled, and never synchronously. */
  send(
    path: string,
    body: Buffer,
    callerId: string,
    sink: FrameSink,
    { requestId = '', isStream = false, mayShare = false, mayBeSent }: SendOptions = {},
  ): Forwarding {
    const { client, answers } = this.#options;
    const caller = { principal: this.#principalOf(callerId), requestId, address: undefined };
    const request = { caller, method: 'POST', target: path, headers: {}, body, isRepeatable: () => false };
    return client.forward(
      { ...request, hop: 'instance', isStream, mayShare, mayBeSent },
      new FrameAnswer(sink, answers),
    );
  }

  /** The rights of a caller at the other node: this template alone. Its node has checked that the caller has them. */
  #principalOf(id: string): Principal {
    const known = this.#principals.get(id);
    if (known !== undefined) return known;
    const principal: Principal = {
      id,
      kind: 'anonymous',
      name: '',
      scopes: new Set(['tools:call']),
      templates: new Set([this.#options.definition.template]),
    };
    this.#principals.set(id, principal);
    return principal;
  }
}

export interface FrameSink {
  frame(frame: PeerFrame): void;
  /** The answer is over; with an error when it broke off. */
  ended(error: GatewayError | undefined): void;
}

class FrameAnswer implements ForwardedAnswer {
  readonly #sink: FrameSink;
  readonly #reader: FrameReader;
  readonly #answers: InstanceHeldBytes | undefined;
  #holding: ReturnType<InstanceHeldBytes['hold']> | undefined;
  #status = 0;
  #isOver = false;

  constructor(sink: FrameSink, answers: InstanceHeldBytes | undefined) {
    this.#sink = sink;
    this.#answers = answers;
    this.#reader = new FrameReader((frame) => {
      if (!this.#isOver) sink.frame(frame);
    });
  }

  head(status: number): void {
    this.#status = status;
  }

  data(part: Buffer): boolean {
    if (this.#status !== 200 || this.#isOver) return true;
    try {
      this.#reader.push(part);
    } catch (thrown) {
      this.#end(answerLost(reasonOf(thrown), 'unknown'));
    }
    this.#count(this.#reader.heldBytes);
    return true;
  }

  end(): void {
    this.#end(this.#status === 200 ? undefined : answerLost(`its node answered ${this.#status}`, 'no'));
  }

  failed(error: GatewayError): void {
    const { code, facts, delivered } = error;
    if (code === 'BACKEND_UNAVAILABLE') this.#end(error);
    else this.#end(answerLost(`its node: ${facts.reason ?? 'no answer'}`, delivered));
  }

  notHolder(): void {
    this.#end(answerLost('its node has left', 'no'));
  }

  cancelled(): void {
    this.#release();
  }

  #count(bytes: number): void {
    if (this.#isOver) return;
    if (this.#holding === undefined && bytes <= UNCOUNTED_BYTES) return;
    this.#holding ??= this.#answers?.hold(() => this.#end(answerLost(ANSWERS_HOLD_TOO_MUCH, 'unknown')));
    if (this.#holding?.set(bytes) === false) this.#end(answerLost(ANSWERS_HOLD_TOO_MUCH, 'unknown'));
  }

  #release(): void {
    this.#isOver = true;
    this.#holding?.release();
  }

  #end(error: GatewayError | undefined): void {
    if (this.#isOver) return;
    this.#release();
    queueMicrotask(() => this.#sink.ended(error)); // it may not have been sent yet
  }
}

/** The failure of an answer that another node did not give. `delivered`: whether the request may have reached the backend. */
export function answerLost(reason: string, delivered: Delivered): GatewayError {
  const health = delivered === 'unknown' ? 'suspicious' : undefined;
  return backendUnavailable(reason, { delivered, ...definedFields({ health }) });
}
