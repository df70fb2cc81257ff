// What the session of a legacy client is, as one plain value: JSON only, with a version of its own. Its session
// holds it: with one template the machine (actors/sessions/client-session.machine.ts), with an aggregate
// protocol/aggregate/sessions/aggregate-session.ts. It can be written at any time and read again by another process.
// Source: ADR 138, ADR 145.
//
// The id of the session is a credential and not part of the value; its client sends it with the next request. The profile and the
// URIs belong to the client: the text is encrypted where it is stored.

import Type, { type Static } from 'typebox';
import { type EndReason, SESSION_ENDS } from '../errors/session-ends.ts';
import { compileShape } from '../errors/validation.ts';
import type { JsonObject } from '../json/json.ts';
import type { Handshake } from '../mcp/mcp.ts';

/** The version of the fields below. A change that an earlier release cannot read increases it. */
export const SESSION_VERSION = 1;
/** The most bytes of a session as text. */
const MAX_SESSION_BYTES = 16 * 1024;

const AnyFields = Type.Unsafe<JsonObject>(Type.Record(Type.String(), Type.Unknown()));
const Text = Type.String();

const CLOSED = { additionalProperties: false };

/** The fields that both kinds of sessions have. */
const COMMON = {
  version: Type.Literal(SESSION_VERSION),
  /** The id of the principal that opened the session. */
  ownerId: Text,
  /** The facts that the client declared in the handshake. */
  profile: Type.Object({ protocolVersion: Text, capabilities: AnyFields, clientInfo: AnyFields }, CLOSED),
  /** The server that the client knows from the handshake; absent before it. */
  greeted: Type.Optional(
    Type.Object(
      {
        era: Type.Union([Type.Literal('legacy'), Type.Literal('modern'), Type.Literal('bare')]),
        protocolVersion: Text,
        serverInfo: Type.Object({ name: Text, version: Text }, CLOSED),
        capabilities: AnyFields,
      },
      CLOSED,
    ),
  ),
  /** The level of the last `logging/setLevel`. */
  logLevel: Type.Optional(Text),
  /** The reason why the session ended; absent while it has not. */
  endReason: Type.Optional(Type.Unsafe<EndReason>(Type.Enum(Object.keys(SESSION_ENDS)))),
};

const WithTemplate = Type.Object(
  {
    ...COMMON,
    kind: Type.Literal('template'),
    template: Text,
    /**
     * The instance to which the session is or was bound; absent before the first binding. `isShared`: in a
     * conversation of several clients.
     */
    binding: Type.Optional(
      Type.Object({ instanceId: Text, serverId: Text, isShared: Type.Boolean() }, CLOSED),
    ),
    /**
     * Whether a call that is not safe to repeat has arrived at a backend; `unknown` while such calls are under way
     * and none is known to have arrived.
     */
    unsafe: Type.Union([Type.Literal('no'), Type.Literal('unknown'), Type.Literal('yes')]),
    /** The URIs of the resources that the client has subscribed to. */
    uris: Type.Array(Text),
  },
  CLOSED,
);

/** The fields of an aggregate session, of either selection. */
const SEVERAL = {
  ...COMMON,
  /** The templates that the owner may use; absent when it may use all. */
  templates: Type.Optional(Type.Array(Text)),
  /** The URIs of the resources that the client has subscribed to, by template, in the form that the client used. */
  uris: Type.Record(Text, Type.Array(Text)),
  /**
   * The URIs that differ at the backend, by template and by the URI that the client used; see
   * protocol/aggregate/uris/composed-uris.ts.
   */
  composed: Type.Optional(Type.Record(Text, Type.Record(Text, Text))),
  /** The templates of which the parts asked for the mark; see UnsafeMark of all-sessions.ts. */
  unsafeIn: Type.Optional(Type.Array(Text)),
};

const WithAll = Type.Object({ ...SEVERAL, kind: Type.Literal('all') }, CLOSED);
/** An earlier release reads it as damaged, and its client begins again. */
const WithView = Type.Object({ ...SEVERAL, kind: Type.Literal('view'), view: Text }, CLOSED);

/** Makes a type read-only, except for objects with arbitrary keys. */
type Frozen<T> = T extends readonly string[]
  ? readonly string[]
  : T extends object
    ? string extends keyof T
      ? T
      : { readonly [K in keyof T]: Frozen<T[K]> }
    : T;
/** The session of a client with one template, as plain data. */
export type SessionValue = Frozen<Static<typeof WithTemplate>>;
/**
 * The session of a client with an aggregate, as plain data: of all templates, or of a view. The sessions of its parts
 * are not included.
 */
export type AggregateSessionValue = Frozen<Static<typeof WithAll>> | Frozen<Static<typeof WithView>>;
export type AnySessionValue = SessionValue | AggregateSessionValue;
/** The binding that the value of a session keeps. */
export type StoredBinding = NonNullable<SessionValue['binding']>;
/** The server that the client knows from the handshake. */
export type StoredHandshake = NonNullable<SessionValue['greeted']>;

/** The generation of a new session. Each life that claims the session increases it by one. */
export const FIRST_GENERATION = 1;

/** The error for a session that cannot be written or read. Its message repeats nothing of the value. */
export class SessionValueError extends Error {
  readonly problem: 'version' | 'size' | 'damage';

  constructor(problem: 'version' | 'size' | 'damage', message: string) {
    super(message);
    this.problem = problem;
  }
}

const SHAPE = compileShape(Type.Union([WithTemplate, WithAll, WithView]), 'body');

/** The value as JSON text. Throws SessionValueError `size`. */
export function writeSession(value: AnySessionValue): string {
  const text = JSON.stringify(value);
  checkSize(text);
  return text;
}

/** Reads the text of `writeSession`. Throws SessionValueError. */
export function readSession(text: string): AnySessionValue {
  checkSize(text);
  const value = parsed(text);
  const version = Object(value).version;
  if (Number.isSafeInteger(version) && version !== SESSION_VERSION) {
    const known = `this release reads version ${SESSION_VERSION}`;
    throw new SessionValueError('version', `the session is stored in version ${version}; ${known}`);
  }
  if (SHAPE.accepts(value)) return value;
  const [where] = SHAPE.issues(value);
  const field = where?.loc.slice(1).join('.') || 'the value';
  throw new SessionValueError('damage', `the stored session is damaged: ${field} is not as it was written`);
}

/** The part of a handshake that the value keeps. */
export function storedHandshakeOf({
  era,
  protocolVersion,
  serverInfo,
  capabilities,
}: Handshake): StoredHandshake {
  const { name, version } = serverInfo;
  return { era, protocolVersion, serverInfo: { name, version }, capabilities };
}

function checkSize(text: string): void {
  const bytes = Buffer.byteLength(text);
  if (bytes <= MAX_SESSION_BYTES) return;
  throw new SessionValueError(
    'size',
    `the session takes ${bytes} bytes; at most ${MAX_SESSION_BYTES} are stored`,
  );
}

/** Parses JSON with an error of its own, since that of `JSON.parse` would repeat a part of the text. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SessionValueError('damage', 'the stored session is damaged: it is not JSON');
  }
}
