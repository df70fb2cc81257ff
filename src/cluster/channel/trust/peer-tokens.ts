// Tokens of the peer channel, by which a node vouches for the caller when it forwards a request. A token names its sender and its
// receiver, by their lives, and the principal with its rights, and expires after 30 s. It is used for many
// requests, and both ends remember it. Times are those of the receiver's monotonic clock, which a greeting asks
// for: no clocks are compared. Source: ADR 148.

import { createHmac, randomBytes } from 'node:crypto';
import { isScope } from '../../../domain/accounts/account.ts';
import { countedIdOf, type Principal } from '../../../domain/accounts/principal.ts';
import { isResourcePath } from '../../../domain/accounts/resource.ts';
import { type Rights, rightsBytes, ToolRights } from '../../../domain/accounts/rights.ts';
import { isJsonObject, type JsonObject, jsonIn } from '../../../domain/json/json.ts';
import { LruMap } from '../../../domain/memory/lru-map.ts';
import { isSameSecret } from '../../../domain/text.ts';
import { PEER_REFUSAL, type RefusalReason } from '../peer-protocol.ts';

const TOKEN_MS = 30_000;
/** A token with less time left is not sent. */
const MIN_LEFT_MS = 10_000;
/**
 * Tokens that a receiver remembers, most with some 500 bytes. It forgets all of them once in TOKEN_MS. One with long lists of
 * rights counts several times.
 */
const MAX_REMEMBERED = 4_096;
/** The memory of one that counts once, in bytes. */
const USUAL_BYTES = 16 * 1024;

interface PeerClaims {
  readonly from: string;
  readonly to: string;
  /** The end of the token, in ms of the receiver's clock. */
  readonly endsAtMs: number;
  readonly principal: Principal;
}

/** Verifies the tokens that reach one node. */
export class TokenVerifier {
  readonly #keys: readonly Buffer[];
  readonly #now: () => number;
  readonly #life: () => string;
  readonly #isMember: (life: string) => boolean;
  readonly #verified = new LruMap<PeerClaims>(
    MAX_REMEMBERED,
    undefined,
    ({ principal }) => 1 + Math.floor(rightsBytes(principal) / USUAL_BYTES),
  );
  /** The time at which this memory began. */
  #sinceMs = Number.NEGATIVE_INFINITY;

  /** `keys`: of which the sender has one. `life`: of this node, now. `isMember`: whether a life is that of a member. */
  constructor(
    keys: readonly Buffer[],
    now: () => number,
    life: () => string,
    isMember: (life: string) => boolean,
  ) {
    this.#keys = keys;
    this.#now = now;
    this.#life = life;
    this.#isMember = isMember;
  }

  /** The principal of a token, or why it is refused. */
  verify(token: string | undefined): Principal | RefusalReason {
    if (token === undefined) return PEER_REFUSAL.noToken;
    const claims = this.#verified.get(token) ?? this.#read(token);
    if (claims === undefined) return PEER_REFUSAL.forged;
    if (claims.to !== this.#life()) return PEER_REFUSAL.elsewhere;
    const leftMs = claims.endsAtMs - this.#now();
    if (leftMs <= 0 || leftMs > TOKEN_MS) return PEER_REFUSAL.expired;
    return this.#isMember(claims.from) ? claims.principal : PEER_REFUSAL.unknownSender;
  }

  /** Answers a greeting with the time of this node; undefined for a greeting that is not valid. */
  greet(greeting: string | undefined): string | undefined {
    const [, from = '', to = '', nonce = '', signature = ''] = GREETING.exec(greeting ?? '') ?? [];
    if (from === '' || to !== this.#life()) return undefined;
    const key = this.#signer(signature, `greeting ${from} ${to} ${nonce}`);
    if (key === undefined) return undefined;
    const nowMs = this.#now();
    return JSON.stringify({ now_ms: nowMs, proof: proofOfTime(key, nonce, nowMs) });
  }

  #read(token: string): PeerClaims | undefined {
    const [, payload = '', signature = ''] = TOKEN.exec(token) ?? [];
    if (payload === '' || this.#signer(signature, `token ${payload}`) === undefined) return undefined;
    const claims = claimsIn(Buffer.from(payload, 'base64url').toString());
    if (claims !== undefined) this.#remember(token, claims);
    return claims;
  }

  /** The key that signed the text. */
  #signer(signature: string, text: string): Buffer | undefined {
    return this.#keys.find((key) => isSameSecret(signature, signatureOf(key, text)));
  }

  #remember(token: string, claims: PeerClaims): void {
    const nowMs = this.#now();
    if (nowMs - this.#sinceMs > TOKEN_MS) {
      this.#verified.clear();
      this.#sinceMs = nowMs;
    }
    this.#verified.set(token, claims);
  }
}

interface Issued {
  readonly from: string;
  readonly token: string;
  readonly endsAtMs: number;
}

/** Makes the tokens for one receiver, once its clock is known. */
export class TokenIssuer {
  readonly #key: Buffer;
  readonly #now: () => number;
  readonly #from: () => string;
  readonly #to: string;
  /** Principals are shared by all requests with the same credentials. */
  #issued = new WeakMap<Principal, Issued>();
  /** The receiver's clock minus this one, in ms. */
  #aheadMs: number | undefined;

  /** `from`: the life of this node, now. */
  constructor(key: Buffer, now: () => number, from: () => string, to: string) {
    this.#key = key;
    this.#now = now;
    this.#from = from;
    this.#to = to;
  }

  /** False: a greeting has to ask for the clock of the receiver first. */
  get isReady(): boolean {
    return this.#aheadMs !== undefined;
  }

  /** The receiver took a token for an expired one. */
  forgetClock(): void {
    this.#aheadMs = undefined;
  }

  /** A token for this principal. Throws a RangeError while it is not ready. */
  tokenFor(principal: Principal): string {
    if (this.#aheadMs === undefined) throw new RangeError('the clock of the receiver is not known');
    const nowMs = this.#now() + this.#aheadMs;
    const issued = this.#issued.get(principal);
    const from = this.#from();
    if (issued?.from === from && issued.endsAtMs - nowMs > MIN_LEFT_MS) return issued.token;
    const endsAtMs = nowMs + TOKEN_MS;
    const token = this.#sign({ from, to: this.#to, endsAtMs, principal });
    this.#issued.set(principal, { from, token, endsAtMs });
    return token;
  }

  /** A greeting, and the function that takes its answer: false for an answer of another program. */
  greeting(): { readonly text: string; readonly answered: (answer: string) => boolean } {
    const nonce = randomBytes(16).toString('base64url');
    const from = this.#from();
    const signature = signatureOf(this.#key, `greeting ${from} ${this.#to} ${nonce}`);
    const sentAtMs = this.#now();
    return {
      text: `${from}.${this.#to}.${nonce}.${signature}`,
      answered: (answer) => {
        const { now_ms: nowMs, proof } = Object(jsonIn(answer));
        if (typeof nowMs !== 'number' || typeof proof !== 'string') return false;
        if (!isSameSecret(proof, proofOfTime(this.#key, nonce, nowMs))) return false;
        const answeredAtMs = this.#now();
        if (answeredAtMs - sentAtMs > MIN_LEFT_MS) return false;
        // The receiver read its clock before its answer came: a token never ends later than it may.
        this.#aheadMs = nowMs - answeredAtMs;
        this.#issued = new WeakMap();
        return true;
      },
    };
  }

  #sign({ principal, ...claims }: PeerClaims): string {
    const { scopes, templates, views, tools, hourlyLimit: _, client, ...identity } = principal;
    const written = {
      ...claims,
      principal: {
        ...identity,
        scopes: [...scopes],
        ...(client === undefined ? {} : { client: { name: client.name, audience: client.audience } }),
        ...(templates === undefined ? {} : { templates: [...templates] }),
        ...(views === undefined ? {} : { views: [...views] }),
        ...(tools === undefined ? {} : { tools: tools.lists }),
      },
    };
    const payload = Buffer.from(JSON.stringify(written)).toString('base64url');
    return `${payload}.${signatureOf(this.#key, `token ${payload}`)}`;
  }
}

const TOKEN = /^([\w-]+)\.([\w-]{43})$/;
const GREETING = /^([\w-]{8})\.([\w-]{8})\.([\w-]{22})\.([\w-]{43})$/;

function signatureOf(key: Buffer, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url');
}

function proofOfTime(key: Buffer, nonce: string, nowMs: number): string {
  return signatureOf(key, `time ${nonce} ${nowMs}`);
}

/** The claims that a node with the key wrote. */
function claimsIn(text: string): PeerClaims | undefined {
  const { from, to, endsAtMs, principal } = Object(jsonIn(text));
  if (typeof from !== 'string' || typeof to !== 'string' || typeof endsAtMs !== 'number') return undefined;
  if (!isJsonObject(principal)) return undefined;
  const { id, kind, name, userId, scopes, client } = principal;
  if (typeof id !== 'string' || typeof name !== 'string') return undefined;
  if (kind !== 'anonymous' && kind !== 'user' && kind !== 'api-key') return undefined;
  const rights = rightsIn(principal);
  if (rights === undefined) return undefined;
  return {
    from,
    to,
    endsAtMs,
    principal: {
      id,
      kind,
      name,
      ...(typeof userId === 'string' ? { userId } : {}),
      ...clientIn(client, countedIdOf(id)),
      scopes: new Set((allTexts(scopes) ?? []).filter(isScope)),
      // The hourly limit is left out: the node that received the request has counted it.
      ...rights,
    },
  };
}

/** The node that received the request has checked where the token works. */
function clientIn(value: unknown, countedId: string): Pick<Principal, 'client'> {
  const { name, audience } = Object(value);
  if (typeof name !== 'string' || typeof audience !== 'string') return {};
  if (!isResourcePath(audience)) return {};
  return { client: { name, countedId, audience, obtainable: new Set() } };
}

/** The result is undefined when one of them is not a list: left out, it would not restrict the caller. */
function rightsIn({ templates, views, tools }: JsonObject): Rights | undefined {
  const [ofTemplates, ofViews] = [allTexts(templates), allTexts(views)];
  const ofTools = Array.isArray(tools) ? tools.map(allTexts).filter((list) => list !== undefined) : undefined;
  if (templates !== undefined && ofTemplates === undefined) return undefined;
  if (views !== undefined && ofViews === undefined) return undefined;
  if (tools !== undefined && ofTools?.length !== Object(tools).length) return undefined;
  return {
    ...(ofTemplates === undefined ? {} : { templates: new Set(ofTemplates) }),
    ...(ofViews === undefined ? {} : { views: new Set(ofViews) }),
    ...(ofTools === undefined ? {} : { tools: new ToolRights(ofTools) }),
  };
}

function allTexts(value: unknown): string[] | undefined {
  return Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : undefined;
}
