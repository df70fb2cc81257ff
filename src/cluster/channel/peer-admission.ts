// The requests of other nodes: answers those without a valid token 401, before a byte of the body is read, and gives the
// others to the application with the principal of the token. Source: ADR 148.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Principal } from '../../domain/accounts/principal.ts';
import type { ErrorCode } from '../../domain/errors/errors.ts';
import { jsonIn } from '../../domain/json/json.ts';
import type { ForwardedCaller, Hop } from '../../domain/nodes/forwarding.ts';
import { ignoreRest } from '../../net/ignore-rest.ts';
import {
  MultiplexedListener,
  type MultiplexedListenerOptions,
  type ServeExchange,
} from './multiplexed/multiplexed-listener.ts';
import { MULTIPLEXED_PROTOCOL } from './multiplexed/multiplexed-wire.ts';
import {
  INSTANCE_PATHS,
  PEER_HEADERS,
  PEER_PATHS,
  PEER_REFUSAL,
  type RefusalReason,
} from './peer-protocol.ts';
import type { TokenVerifier } from './trust/peer-tokens.ts';

/** A request that the listener refused. */
export interface PeerRefusal {
  readonly reason: RefusalReason | 'failed handshake' | 'unauthorized caller' | 'unknown instance';
  /** Status of the answer, or of the error in it; 0 without an answer. */
  readonly status: number;
  readonly method: string;
  readonly path: string;
  /** The instance that was asked for, `template/id`. */
  readonly instance?: string | undefined;
  /** Id of the principal of the token, if it is valid. */
  readonly callerId?: string | undefined;
  readonly address: string | undefined;
}

export interface PeerAdmissionOptions {
  readonly tokens: TokenVerifier;
  /** Resolves or rejects when it is known whether the life of this node goes on; undefined while there is no doubt. */
  readonly untilLifeKnown: () => Promise<void> | undefined;
  /** Reads the table of nodes again, for a sender that it did not have. */
  readonly refreshNodes: () => Promise<void>;
  /** Whether the member with this life refuses connections of this node. Never rejects. */
  readonly isRefused: (life: string) => Promise<boolean>;
  /** Whether the database is away, for this life. Undefined: this node cannot say. Never rejects. */
  readonly isDatabaseAway: (life: string) => Promise<boolean | undefined>;
  /** Serves a request that another node forwards. */
  readonly serve: ServePeer;
  /** Serves the requests of another node to an instance of this one. Default: nothing is served. */
  readonly instances?: ServedInstances;
  readonly onRefused: (refusal: PeerRefusal) => void;
}

export type ServePeer = (request: IncomingMessage, response: ServerResponse, caller: ForwardedCaller) => void;

/** The part of the instances of this node that other nodes reach. */
export interface ServedInstances {
  /** A request on a connection of its own. */
  readonly request: ServePeer;
  /** A request on a connection that exchanges share. */
  readonly exchange: ServeExchange;
}

/** The requests of other nodes, and the connections that they upgrade to multiplexed ones. */
export class PeerAdmission {
  /** The multiplexed connections that are open. */
  readonly multiplexed = new Set<MultiplexedListener>();
  readonly #options: PeerAdmissionOptions;
  readonly #prove: (socket: Socket) => void;

  /** `prove`: called with each connection over which a valid token arrived. */
  constructor(options: PeerAdmissionOptions, prove: (socket: Socket) => void) {
    this.#options = options;
    this.#prove = prove;
  }

  readonly serve: RequestListener = (request, response) =>
    this.#whenCertain(
      () => this.#begin(request, response),
      () => answer(response, 503, PEER_REFUSAL.inDoubt, 'NODE_UNAVAILABLE'),
    );

  /** Upgrades a connection that is to be multiplexed, and refuses tunnels. */
  readonly upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    socket.on('error', () => socket.destroy());
    const { url, headers } = request;
    const refuse = (reason: RefusalReason): void => {
      const status = this.#noteRefusal(request, reason);
      // Otherwise a program that does not close its end would keep the connection.
      socket.end(`HTTP/1.1 ${status} Refused\r\nconnection: close\r\n\r\n`, () => socket.destroy());
    };
    const isMultiplexed = url === INSTANCE_PATHS.multiplexed && headers.upgrade === MULTIPLEXED_PROTOCOL;
    const isFirstHop = headerOf(request, PEER_HEADERS.hops) === ('instance' satisfies Hop);
    const accept = (): void => {
      const { instances } = this.#options;
      if (socket.destroyed) return; // its sender left meanwhile
      if (isMultiplexed && isFirstHop && instances !== undefined)
        this.#multiplex(request, socket, head, instances.exchange);
      else refuse(PEER_REFUSAL.loop);
    };
    this.#admit(headerOf(request, PEER_HEADERS.token), accept, refuse);
  };

  /** Answers a greeting; gives any other request with a valid token to its server. */
  #begin(request: IncomingMessage, response: ServerResponse): void {
    const token = headerOf(request, PEER_HEADERS.token);
    const [path, life = ''] = request.url?.split('?') ?? [];
    if (path !== undefined && isGreeting(path)) {
      this.#greet(request, response, path, life);
      return;
    }
    this.#admit(
      token,
      (principal) => {
        this.#prove(request.socket);
        this.#pass(request, response, principal);
      },
      (problem) => this.#refuse(request, response, problem),
    );
  }

  #greet(request: IncomingMessage, response: ServerResponse, path: GreetingPath, life: string): void {
    const greeting = this.#options.tokens.greet(headerOf(request, PEER_HEADERS.token));
    if (greeting === undefined) {
      this.#refuse(request, response, 'forged token');
      return;
    }
    this.#prove(request.socket);
    const answerWith = (text: string) =>
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(text);
    if (path === PEER_PATHS.greeting) answerWith(greeting);
    else
      void this.#saidOf(path, life).then((said) =>
        answerWith(JSON.stringify({ ...Object(jsonIn(greeting)), ...said })),
      );
  }

  /** The answer to the question that a greeting at this path asks. */
  async #saidOf(path: Exclude<GreetingPath, typeof PEER_PATHS.greeting>, life: string): Promise<object> {
    const { isRefused, isDatabaseAway } = this.#options;
    if (path === PEER_PATHS.refusal) return { is_refused: await isRefused(life) };
    return { is_away: await isDatabaseAway(life) };
  }

  #pass(request: IncomingMessage, response: ServerResponse, principal: Principal): void {
    const { serve, instances } = this.#options;
    const isOfInstance = OF_INSTANCES.has(request.url ?? '');
    const hop: Hop = isOfInstance ? 'instance' : 'session';
    const serveIt = isOfInstance ? instances?.request : serve;
    // A request that took two hops of one kind runs in a circle.
    if (headerOf(request, PEER_HEADERS.hops) !== hop || serveIt === undefined) {
      this.#refuse(request, response, PEER_REFUSAL.loop);
      return;
    }
    const requestId = headerOf(request, 'x-request-id') ?? '';
    const address = headerOf(request, PEER_HEADERS.clientAddress);
    serveIt(request, response, { principal, requestId, address });
  }

  #multiplex({ socket: tcp }: IncomingMessage, socket: Duplex, head: Buffer, serve: ServeExchange): void {
    this.#prove(tcp);
    const admit: MultiplexedListenerOptions['admit'] = (token, accept, refuse, path) => {
      const refused = (reason: RefusalReason): void => {
        this.#noteRefusal({ method: 'POST', url: path, socket: tcp }, reason);
        refuse(reason);
      };
      this.#whenCertain(
        () => this.#admit(token, accept, refused),
        () => refuse(PEER_REFUSAL.inDoubt),
      );
    };
    const listener: MultiplexedListener = new MultiplexedListener(socket, head, { serve, admit }, () =>
      this.multiplexed.delete(listener),
    );
    this.multiplexed.add(listener);
  }

  /** Calls one of the two, nearly always at once: a doubt about the life of this node is rare. */
  #whenCertain(go: () => void, refuse: () => void): void {
    const known = this.#options.untilLifeKnown();
    if (known === undefined) go();
    else known.then(go, refuse);
  }

  /** Calls one of the two, once. A sender may have joined just now. */
  #admit(
    token: string | undefined,
    accept: (principal: Principal) => void,
    refuse: (reason: RefusalReason) => void,
  ): void {
    const { tokens, refreshNodes } = this.#options;
    const verified = tokens.verify(token);
    if (typeof verified !== 'string') accept(verified);
    else if (verified !== PEER_REFUSAL.unknownSender) refuse(verified);
    else {
      void refreshNodes().then(() => {
        const again = tokens.verify(token);
        if (typeof again === 'string') refuse(again);
        else accept(again);
      });
    }
  }

  #refuse(request: IncomingMessage, response: ServerResponse, reason: RefusalReason): void {
    answer(response, this.#noteRefusal(request, reason), reason);
  }

  /** Reports a refusal. Returns the status of the answer. */
  #noteRefusal(
    { method = '', url = '', socket }: Pick<IncomingMessage, 'method' | 'url' | 'socket'>,
    reason: RefusalReason,
  ): number {
    const [path = ''] = url.split('?', 1); // the query may name a session
    const status = reason === PEER_REFUSAL.loop ? 421 : 401;
    this.#options.onRefused({ reason, status, method, path, address: socket.remoteAddress });
    return status;
  }
}

const OF_INSTANCES: ReadonlySet<string> = new Set(Object.values(INSTANCE_PATHS));

type GreetingPath = (typeof PEER_PATHS)[keyof typeof PEER_PATHS];

function isGreeting(path: string): path is GreetingPath {
  return Object.values<string>(PEER_PATHS).includes(path);
}

/** Answers a request without reading its body, nor what follows: members send one request at a time. */
function answer(
  response: ServerResponse,
  status: number,
  reason: RefusalReason,
  code: ErrorCode = 'AUTHENTICATION_REQUIRED',
): void {
  ignoreRest(response.req.socket);
  const body = JSON.stringify({ detail: `The request is refused: ${reason}.`, error_code: code });
  response.writeHead(status, {
    Connection: 'close',
    [PEER_HEADERS.refused]: reason,
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
  });
  response.end(body);
}

/** Node joins repeated headers of these names. */
function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === 'string' ? value : undefined;
}
